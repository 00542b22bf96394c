use std::time::Duration;

use crate::commands::queues::Queue;
use crate::commands::top::model::{Failure, Look, Model, Pane, Press, Wish};

fn queue(name: &str, ready: usize, oldest: u64) -> Queue {
    Queue {
        queue: name.into(),
        ready,
        oldest: Some(Duration::from_secs(oldest)),
        ..Queue::default()
    }
}

fn model() -> Model {
    let mut model = Model::new("tenure".into(), true);
    model.take(Ok(Look {
        queues: vec![queue("a", 1, 30), queue("b", 5, 20), queue("c", 3, 10)],
        completed: 12.4,
        failures: vec![Failure {
            id: "order-1".into(),
            ..Failure::default()
        }],
        ..Look::default()
    }));
    model
}

fn order(model: &Model) -> String {
    let look = model.look.as_ref().expect("a look");
    look.queues.iter().map(|q| q.queue.as_str()).collect()
}

#[test]
fn rows_are_sorted_anew_and_what_is_chosen_stays_chosen() {
    let mut model = model();
    assert_eq!(
        (order(&model).as_str(), model.order(Pane::Queues)),
        ("bca", "depth")
    );
    model.press(Press::Down);
    assert_eq!(model.chosen(Pane::Queues), Some(0));
    model.press(Press::Down);
    assert_eq!(model.chosen(Pane::Queues), Some(1), "c");
    model.press(Press::Sort);
    assert_eq!(
        (order(&model).as_str(), model.order(Pane::Queues)),
        ("abc", "age")
    );
    assert_eq!(model.chosen(Pane::Queues), Some(2), "still c");
    model.press(Press::Down);
    assert_eq!(model.chosen(Pane::Queues), Some(2), "the last one");
    model.press(Press::Up);
    model.take(Ok(Look {
        queues: vec![queue("b", 9, 1)],
        ..Look::default()
    }));
    assert_eq!(model.chosen(Pane::Queues), Some(0), "b is alone");
    model.press(Press::Back);
    assert_eq!(model.chosen(Pane::Queues), None);
}

#[test]
fn a_frozen_screen_keeps_what_it_shows() {
    let mut model = model();
    model.press(Press::Freeze);
    model.take(Ok(Look::default()));
    model.take(Err("gone".into()));
    assert_eq!(order(&model), "bca");
    assert!(model.lost.is_none());
    model.press(Press::Freeze);
    model.take(Ok(Look::default()));
    assert_eq!(order(&model), "");
    assert_eq!(model.history, [12, 0]);
}

#[test]
fn a_lost_redis_is_counted_and_what_was_seen_stays() {
    let mut model = model();
    model.take(Err("refused".into()));
    model.take(Err("refused".into()));
    assert_eq!(model.lost, Some(("refused".into(), 2)));
    assert_eq!(order(&model), "bca");
    model.take(Ok(Look::default()));
    assert_eq!(model.lost, None);
}

#[test]
fn enter_shows_what_is_chosen_and_closes_it_again() {
    let mut model = model();
    assert_eq!(model.press(Press::Enter), Wish::Nothing);
    assert!(model.detail.is_none(), "nothing is chosen");
    model.press(Press::Down);
    model.press(Press::Enter);
    let detail = model.detail.clone().expect("a detail");
    assert!(detail.title.contains('b'), "{detail:?}");
    model.press(Press::Back);
    assert!(model.detail.is_none());
    model.press(Press::Next);
    assert_eq!(model.focus, Pane::Workers);
    model.press(Press::Down);
    assert_eq!(model.press(Press::Enter), Wish::Nothing, "no workers");
    model.press(Press::Next);
    model.press(Press::Down);
    assert_eq!(model.press(Press::Enter), Wish::Show("order-1".into()));
    assert_eq!(model.press(Press::Quit), Wish::Quit);
}
