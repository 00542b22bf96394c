use std::time::Duration;

use ratatui::{Terminal, backend::TestBackend, buffer::Buffer, style::Modifier};
use tenure::time::Timestamp;

use crate::commands::queues::Queue;
use crate::commands::top::{
    draw::draw,
    model::{Detail, Failure, Look, Model, Press, States, Worker},
    plain, text,
};

const NOON: i64 = 1_796_040_000_000;

fn look() -> Look {
    let seconds = Duration::from_secs;
    Look {
        at: Timestamp::from_millis(NOON),
        states: States {
            ready: 7,
            running: 12,
            delayed: 3,
            waiting: 2,
            paused: 1,
            completed: 4711,
            failed: 2,
            cancelled: 0,
            terminated: 1,
        },
        completed: 48.25,
        failed: 0.4,
        queues: vec![
            Queue {
                queue: "slow".into(),
                workflow: "import".into(),
                definition: "72531e0d3db9af19".into(),
                ready: 7,
                oldest: Some(seconds(312)),
                head: Some(("import-1".into(), "fetch".into())),
                parked: 0,
                workers: 0,
            },
            Queue {
                queue: "default".into(),
                workflow: "order".into(),
                definition: "469b008dbebbf246".into(),
                workers: 2,
                parked: 1,
                ..Queue::default()
            },
        ],
        workers: vec![
            Worker {
                id: "vm-12-zW9xdd81".into(),
                process: "vm:12".into(),
                busy: 10,
                slots: 20,
                up: seconds(7_260),
                seen: seconds(4),
                ..Worker::default()
            },
            Worker {
                id: "vm-13-aaaabbbb".into(),
                process: "vm:13".into(),
                busy: 2,
                slots: 100,
                draining: true,
                up: seconds(90_000),
                seen: seconds(21),
                ..Worker::default()
            },
        ],
        failures: vec![Failure {
            id: "order-42".into(),
            workflow: "order".into(),
            task: "charge".into(),
            message: "the bank declined card 42\ncaused by: code 51".into(),
            at: Timestamp::from_millis(NOON - 61_000),
        }],
    }
}

fn model() -> Model {
    let mut model = Model::new("tenure".into(), true);
    model.take(Ok(look()));
    model
}

fn drawn(model: &Model, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let frame = terminal.draw(|frame| draw(frame, model));
    frame.expect("a frame");
    terminal.backend().buffer().clone()
}

fn line(buffer: &Buffer, at: usize) -> String {
    text(buffer).lines().nth(at).unwrap_or_default().to_owned()
}

#[test]
fn the_whole_screen() {
    let expected = "
 tenure top  namespace tenure  2026-11-30T12:00:00.000Z
 tasks      ready 7  running 12  delayed 3   instances  waiting 2  paused 1
 ended      completed 4711  failed 2  cancelled 0  terminated 1
 now        completed 48.2/s  failed 0.4/s  █
▸queues (2) by depth ───────────────────────────────────────────────────────────
 QUEUE    WORKFLOW                 READY  OLDEST  WORKERS  PARKED
 slow     import:72531e0d3db9af19  7      5m 12s  0        0       no worker
 default  order:469b008dbebbf246   0              2        1
 workers (2) by busy ───────────────────────────────────────────────────────────
 WORKER          PROCESS  BUSY               UP     SEEN
 vm-12-zW9xdd81  vm:12    10/20  ▮▮▮▮▮·····  2h 1m  4s ago
 vm-13-aaaabbbb  vm:13    2/100  ··········  1d 1h  21s ago  draining
 newest failures (1) by time ───────────────────────────────────────────────────
 FAILED     INSTANCE  WORKFLOW  TASK    ERROR
 1m 1s ago  order-42  order     charge  the bank declined card 42…

 q quit   p freeze   s sort   tab next part   up/down choose   enter show   esc";
    assert_eq!(text(&drawn(&model(), 80, 17)), expected[1..]);
}

#[test]
fn one_frame_of_text_is_as_high_as_what_there_is_and_tells_no_keys() {
    let mut model = Model::new("tenure".into(), false);
    model.take(Ok(Look {
        at: Timestamp::from_millis(NOON),
        ..Look::default()
    }));
    let shown = plain(&model, 80).expect("a frame");
    let expected = "
 tenure top  namespace tenure  2026-11-30T12:00:00.000Z
 tasks      ready 0  running 0  delayed 0   instances  waiting 0  paused 0
 ended      completed 0  failed 0  cancelled 0  terminated 0
 now        completed 0.0/s  failed 0.0/s
 queues (0) by depth ───────────────────────────────────────────────────────────
 no queues: nothing was ever started here

 workers (0) by busy ───────────────────────────────────────────────────────────
 no workers

 newest failures (0) by time ───────────────────────────────────────────────────
 none
";
    assert_eq!(shown, expected[1..]);
}

#[test]
fn a_lost_redis_is_said_in_the_first_line_and_the_rest_stays() {
    let mut model = model();
    model.take(Err("connection refused".into()));
    let screen = drawn(&model, 80, 17);
    let first = " no answer from Redis, look 1, trying again: connection refused";
    assert_eq!(line(&screen, 0), first);
    assert!(line(&screen, 6).starts_with(" slow"));
    let mut model = Model::new("tenure".into(), true);
    assert!(line(&drawn(&model, 80, 17), 0).ends_with("looking …"));
    model.press(Press::Freeze);
    assert!(line(&drawn(&model, 80, 17), 0).ends_with("frozen, p goes on"));
}

#[test]
fn the_row_that_is_chosen_is_marked_and_its_detail_covers_the_parts() {
    let mut model = model();
    model.press(Press::Down);
    let screen = drawn(&model, 80, 17);
    let marked = |row: u16| screen[(1, row)].modifier.contains(Modifier::REVERSED);
    assert!(marked(6) && !marked(7));
    model.press(Press::Enter);
    let screen = text(&drawn(&model, 80, 17));
    assert!(screen.contains("┌ queue slow ─"), "{screen}");
    assert!(screen.contains("at its head import-1, task fetch, started 5m 12s ago"));
    assert!(screen.contains("No worker has this definition"), "{screen}");
    assert!(!screen.contains("order-42"), "{screen}");
    model.detail = Some(Detail {
        title: "instance order-42".into(),
        lines: vec!["long ".repeat(40)],
    });
    let wrapped = text(&drawn(&model, 80, 17));
    assert_eq!(wrapped.matches("long").count(), 40, "{wrapped}");
}

#[test]
fn a_small_screen_shows_the_first_rows_of_each_part() {
    let mut look = look();
    let queue = look.queues[1].clone();
    look.queues.extend((0..50).map(|n| Queue {
        queue: format!("q{n}"),
        ..queue.clone()
    }));
    let mut model = Model::new("tenure".into(), true);
    model.take(Ok(look));
    let screen = text(&drawn(&model, 78, 14));
    assert!(screen.contains("slow"), "{screen}");
    assert!(screen.contains("vm-12"), "{screen}");
    assert!(screen.contains("FAILED"), "{screen}");
    // Any size will do, if only for the eye.
    for (width, height) in [(1, 1), (10, 3), (300, 5), (5, 100)] {
        drawn(&model, width, height);
    }
}
