# Sidekiq. Called and answering as the Rust programs (common/src/args.rs, common/src/loads.rs), but the worker is a
# process of its own, as Sidekiq has it. A chain's job puts in the next: batches are not in the open source version.

require 'json'
require 'optparse'

args = { shape: 'single', count: 1000, slots: 10, hold: false }
load_name = ARGV.shift
OptionParser.new do |options|
  options.on('--url URL') { |url| args[:url] = url }
  options.on('--shape SHAPE', %w[single chain]) { |shape| args[:shape] = shape }
  options.on('--count N', Integer) { |count| args[:count] = count }
  options.on('--slots N', Integer) { |slots| args[:slots] = slots }
  options.on('--hold') { args[:hold] = true }
end.parse!
ENV['REDIS_URL'] = args[:url]

require 'sidekiq'
require 'sidekiq/api'
Redis.silence_deprecations = true if Redis.respond_to?(:silence_deprecations=)

BULK = 1000
STEPS = args[:shape] == 'chain' ? 3 : 1

# The worker's process: its command, and the lines that it says.
class Worker
  def self.command(args)
    ['sidekiq', '-e', 'production', '-r', File.join(__dir__, 'worker.rb'), '-q', 'bench', '-c', args[:slots].to_s]
  end

  def initialize(args, tasks)
    environment = { 'BENCH_TASKS' => tasks.to_s, 'BENCH_STEPS' => STEPS.to_s }
    @out, write = IO.pipe
    @pid = Process.spawn(environment, *self.class.command(args), out: write)
    write.close
    raise 'the worker did not start' unless @out.gets == "ready\n"
  end

  def report
    JSON.parse(@out.gets)
  end

  def stop
    Process.kill('TERM', @pid)
    Process.wait(@pid)
  end
end

def payload(job)
  format('%08d', job) + 'x' * 92
end

def enqueue(count)
  (0...count).each_slice(BULK) do |jobs|
    Sidekiq::Client.push_bulk('class' => 'BenchJob', 'queue' => 'bench', 'args' => jobs.map { |job| [payload(job)] })
  end
end

def used_memory
  Integer(Sidekiq.redis { |redis| redis.info('memory')['used_memory'] })
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# Everything that was put in ran, and Sidekiq says so too, when its worker has stopped.
def check(report, worker, tasks)
  worker.stop
  raise "#{report['never']} tasks never ran" unless report['never'].zero?

  stats = Sidekiq::Stats.new
  raise "#{stats.processed} processed, not #{tasks}" unless stats.processed == tasks
  raise 'something failed or is left' unless stats.failed.zero? && stats.enqueued.zero?
end

def throughput(args)
  tasks = args[:count] * STEPS
  empty = used_memory
  from = now
  enqueue(args[:count])
  enqueued = now - from
  full = used_memory
  worker = Worker.new(args, tasks)
  report = worker.report
  check(report, worker, tasks)
  { enqueue: args[:count] / enqueued, drain: tasks / report['seconds'], bytes: (full - empty).fdiv(args[:count]),
    jobs: args[:count], tasks: tasks, repeated: report['repeated'] }
end

def percentile(times, share)
  times.sort[((times.size - 1) * share).round]
end

def idle(args)
  worker = Worker.new(args, args[:count])
  sleep 1
  args[:count].times do |job|
    sleep 0.010 + (job * 7919 % 5) / 1000.0
    Sidekiq::Client.push('class' => 'BenchJob', 'queue' => 'bench', 'args' => [payload(job), 0, now])
  end
  report = worker.report
  check(report, worker, args[:count])
  times = report['latencies']
  { handler_p50: percentile(times, 0.5), handler_p99: percentile(times, 0.99), result_p50: nil, result_p99: nil,
    repeated: report['repeated'] }
end

case load_name
when 'throughput' then puts JSON.generate(throughput(args))
when 'idle' then puts JSON.generate(idle(args))
when 'enqueue'
  enqueue(args[:count])
  puts JSON.generate(enqueued: args[:count])
when 'worker'
  ENV['BENCH_SPEAKS'] = '1'
  ENV['BENCH_HOLD'] = '1' if args[:hold]
  exec(*Worker.command(args))
else
  abort "unknown load #{load_name}"
end
