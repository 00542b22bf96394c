# The worker's side: loaded by the `sidekiq` command. The environment says what it is for.

require 'json'
require 'sidekiq'

$stdout.sync = true
Sidekiq.logger.level = Logger::WARN
# Debian's redis gem warns at every call; that costs more than the call.
Redis.silence_deprecations = true if Redis.respond_to?(:silence_deprecations=)

# What the handlers did. Nothing is stored when a job ends, so a load is over when its last handler is.
module Ledger
  TASKS = Integer(ENV.fetch('BENCH_TASKS', '0'))
  STEPS = Integer(ENV.fetch('BENCH_STEPS', '1'))
  SPEAKS = ENV['BENCH_SPEAKS'] == '1'
  HOLD = ENV['BENCH_HOLD'] == '1'

  @lock = Mutex.new
  @ran = Array.new(TASKS, 0)
  @total = 0
  @latencies = []

  def self.now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def self.begin(job, step, pushed)
    time = now
    puts "begin #{job}" if SPEAKS
    sleep if HOLD
    return if TASKS.zero?

    @lock.synchronize do
      @first ||= time
      @ran[job * STEPS + step] += 1
      @latencies << (time - pushed) * 1000 if pushed
    end
  end

  def self.end
    @lock.synchronize do
      @total += 1
      report if @total == TASKS
    end
  end

  def self.report
    figures = { never: @ran.count(&:zero?), repeated: @ran.count { |times| times > 1 } }
    puts JSON.generate(seconds: now - @first, latencies: @latencies, **figures)
  end
end

# A job, or one step of a chain, which puts in the next.
class BenchJob
  include Sidekiq::Job
  sidekiq_options queue: 'bench'

  def perform(payload, step = 0, pushed = nil)
    Ledger.begin(payload[0, 8].to_i, step, pushed)
    BenchJob.perform_async(payload, step + 1) if step + 1 < Ledger::STEPS
    Ledger.end
  end
end

Sidekiq.configure_server do |config|
  config.on(:startup) { puts 'ready' }
end
