//! Draws what the model knows. Pure: the same model gives the same screen.

use ratatui::{
    Frame,
    layout::{Alignment, Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Borders, Clear, Paragraph, Row, Sparkline, Table, TableState, Wrap},
};

use super::model::{Failure, Look, Model, Pane, Worker};
use crate::{answer::cut, commands::queues::Queue, moment};

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const KEYS: &str =
    " q quit   p freeze   s sort   tab next part   up/down choose   enter show   esc close";

/// How many lines all of it takes.
pub(super) fn height(model: &Model) -> u16 {
    let panes: u16 = wants(model).iter().sum();
    4 + panes + u16::from(model.is_live)
}

/// All of it.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let footer = u16::from(model.is_live);
    let [title, states, rate, body, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(footer),
    ])
    .areas(frame.area());
    frame.render_widget(heading(model), title);
    if let Some(look) = &model.look {
        frame.render_widget(self::states(look), states);
        throughput(frame, rate, model, look);
        panes(frame, body, model, look);
    }
    if model.is_live {
        frame.render_widget(Paragraph::new(KEYS).style(DIM), keys);
    }
    detail(frame, body, model);
}

fn heading(model: &Model) -> Line<'_> {
    if let Some((error, looks)) = &model.lost {
        let text = format!(" no answer from Redis, look {looks}, trying again: {error}");
        return Line::styled(cut(&text, 400), ALARM.add_modifier(Modifier::REVERSED));
    }
    let mut spans = vec![
        Span::styled(" tenure top", BOLD),
        Span::raw(format!("  namespace {}", model.namespace)),
    ];
    if let Some(look) = &model.look {
        spans.push(Span::raw(format!("  {}", moment::at(look.at))));
    } else {
        spans.push(Span::raw("  looking …"));
    }
    if model.frozen {
        spans.push(Span::styled("  frozen, p goes on", ALARM));
    }
    Line::from(spans)
}

fn states(look: &Look) -> Paragraph<'static> {
    let states = &look.states;
    let one = |name: &'static str, count: usize| {
        let style = match name {
            "failed" if count > 0 => ALARM,
            _ => BOLD,
        };
        [
            Span::raw(format!("  {name} ")),
            Span::styled(count.to_string(), style),
        ]
    };
    let tasks = [
        ("ready", states.ready),
        ("running", states.running),
        ("delayed", states.delayed),
    ];
    let held = [("waiting", states.waiting), ("paused", states.paused)];
    let over = [
        ("completed", states.completed),
        ("failed", states.failed),
        ("cancelled", states.cancelled),
        ("terminated", states.terminated),
    ];
    let part = |name: &'static str, counts: &[(&'static str, usize)]| {
        let spans = counts.iter().flat_map(|(name, count)| one(name, *count));
        let mut line = vec![Span::styled(name, DIM)];
        line.extend(spans);
        line
    };
    let mut live = part(" tasks    ", &tasks);
    live.extend(part("   instances", &held));
    Paragraph::new(vec![
        Line::from(live),
        Line::from(part(" ended    ", &over)),
    ])
}

fn throughput(frame: &mut Frame<'_>, area: Rect, model: &Model, look: &Look) {
    let text = format!(
        "  completed {:.1}/s  failed {:.1}/s  ",
        look.completed, look.failed
    );
    let line = Line::from(vec![
        Span::styled(" now      ", DIM),
        Span::styled(text, BOLD),
    ]);
    let width = u16::try_from(line.width()).unwrap_or(area.width);
    let [left, right] =
        Layout::horizontal([Constraint::Length(width), Constraint::Min(0)]).areas(area);
    frame.render_widget(line, left);
    if model.is_live {
        let skip = model.history.len().saturating_sub(right.width.into());
        let curve = Sparkline::default().data(model.history.iter().skip(skip).copied());
        frame.render_widget(curve, right);
    }
}

/// How many lines each part takes when there is room: a title, a head and the rows.
fn wants(model: &Model) -> [u16; 3] {
    let rows = model.look.as_ref().map_or([0; 3], |look| {
        [look.queues.len(), look.workers.len(), look.failures.len()]
    });
    rows.map(|rows| {
        u16::try_from(rows.max(1))
            .unwrap_or(u16::MAX / 8)
            .min(u16::MAX / 8)
            + 2
    })
}

/// Each gets a third, and what the others leave.
fn share(wants: [u16; 3], height: u16) -> [u16; 3] {
    let mut given = [0; 3];
    let mut left = height;
    while left > 0 {
        let open: Vec<usize> = (0..3).filter(|at| given[*at] < wants[*at]).collect();
        if open.is_empty() {
            break;
        }
        for at in open {
            if left > 0 {
                given[at] += 1;
                left -= 1;
            }
        }
    }
    given
}

fn panes(frame: &mut Frame<'_>, area: Rect, model: &Model, look: &Look) {
    let heights = share(wants(model), area.height).map(Constraint::Length);
    let [queues, workers, failures] = Layout::vertical(heights).areas(area);
    let rows = look.queues.iter().map(queue).collect();
    let pane = Part {
        pane: Pane::Queues,
        title: "queues",
        empty: "no queues: nothing was ever started here",
        head: &[
            "QUEUE", "WORKFLOW", "READY", "OLDEST", "WORKERS", "PARKED", "",
        ],
        widths: &[16, 40, 8, 10, 7, 6, 10],
    };
    pane.draw(frame, queues, model, rows);
    let rows = look.workers.iter().map(worker).collect();
    let pane = Part {
        pane: Pane::Workers,
        title: "workers",
        empty: "no workers",
        head: &["WORKER", "PROCESS", "BUSY", "", "UP", "SEEN", ""],
        widths: &[30, 24, 10, 12, 8, 10, 10],
    };
    pane.draw(frame, workers, model, rows);
    let rows = look.failures.iter().map(|f| failure(f, look)).collect();
    let pane = Part {
        pane: Pane::Failures,
        title: "newest failures",
        empty: "none",
        head: &["FAILED", "INSTANCE", "WORKFLOW", "TASK", "ERROR"],
        widths: &[12, 24, 14, 14, 400],
    };
    pane.draw(frame, failures, model, rows);
}

/// What a part of the screen looks like.
struct Part {
    pane: Pane,
    title: &'static str,
    empty: &'static str,
    head: &'static [&'static str],
    /// Of the columns; the last one gets what is left, the others shrink to what they hold.
    widths: &'static [u16],
}

/// The texts of a row, and whether it is an alarm.
struct Cells(Vec<String>, Style);

impl Part {
    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, rows: Vec<Cells>) {
        let is_focus = model.is_live && model.focus == self.pane;
        let mark = if is_focus { "▸" } else { " " };
        let title = format!(
            "{mark}{} ({}) by {} ",
            self.title,
            rows.len(),
            model.order(self.pane)
        );
        let style = if is_focus { BOLD } else { DIM };
        let block = Block::new()
            .borders(Borders::TOP)
            .border_style(DIM)
            .title(Span::styled(title, style));
        if rows.is_empty() {
            let text = Paragraph::new(format!(" {}", self.empty)).block(block);
            frame.render_widget(text, area);
            return;
        }
        let widths = self.fit(&rows);
        let head = Row::new(self.indented(self.head.iter().map(ToString::to_string)));
        let rows = rows
            .into_iter()
            .map(|Cells(texts, style)| Row::new(self.indented(texts.into_iter())).style(style));
        let table = Table::new(rows, widths)
            .header(head.style(DIM))
            .column_spacing(2)
            .block(block)
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        let chosen = model.chosen(self.pane).filter(|_| is_focus);
        let mut state = TableState::new().with_selected(chosen);
        frame.render_stateful_widget(table, area, &mut state);
    }

    /// A blank before the first column: nothing sticks to the edge.
    fn indented(&self, texts: impl Iterator<Item = String>) -> Vec<String> {
        texts
            .enumerate()
            .map(|(at, text)| match at {
                0 => format!(" {text}"),
                _ => cut(&text, self.widths[at].into()),
            })
            .collect()
    }

    /// As wide as what is in it, up to what it may have.
    fn fit(&self, rows: &[Cells]) -> Vec<Constraint> {
        let widest = |at: usize| {
            let texts = rows.iter().map(|Cells(texts, _)| texts[at].chars().count());
            let head = self.head[at].chars().count();
            u16::try_from(texts.max().unwrap_or(0).max(head)).unwrap_or(u16::MAX)
        };
        let last = self.widths.len() - 1;
        let widths = self.widths.iter().enumerate().map(|(at, most)| match at {
            0 => Constraint::Length(widest(0).min(*most) + 1),
            _ if at == last => Constraint::Min(widest(at).min(*most).min(10)),
            _ => Constraint::Length(widest(at).min(*most)),
        });
        widths.collect()
    }
}

fn queue(queue: &Queue) -> Cells {
    let is_alone = queue.is_alone();
    let note = if is_alone { "no worker" } else { "" };
    let texts = vec![
        cut(&queue.queue, 16),
        format!("{}:{}", queue.workflow, queue.definition),
        queue.ready.to_string(),
        queue.oldest.map(moment::span).unwrap_or_default(),
        queue.workers.to_string(),
        queue.parked.to_string(),
        note.to_owned(),
    ];
    Cells(texts, if is_alone { ALARM } else { Style::new() })
}

fn worker(worker: &Worker) -> Cells {
    let tenths = (worker.busy * 10)
        .checked_div(worker.slots)
        .unwrap_or(0)
        .min(10);
    let state = if worker.draining { "draining" } else { "" };
    let style = match worker.draining {
        true => Style::new().fg(Color::Yellow),
        false => Style::new(),
    };
    let texts = vec![
        worker.id.clone(),
        worker.process.clone(),
        format!("{}/{}", worker.busy, worker.slots),
        format!("{:·<10}", "▮".repeat(tenths)),
        moment::span(worker.up),
        format!("{} ago", moment::span(worker.seen)),
        state.to_owned(),
    ];
    Cells(texts, style)
}

fn failure(failure: &Failure, look: &Look) -> Cells {
    let texts = vec![
        format!("{} ago", moment::span(look.at.since(failure.at))),
        failure.id.clone(),
        failure.workflow.clone(),
        failure.task.clone(),
        cut(&failure.message, 400),
    ];
    Cells(texts, Style::new())
}

fn detail(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let Some(detail) = &model.detail else { return };
    let lines: Vec<Line<'_>> = detail
        .lines
        .iter()
        .map(|l| Line::raw(format!(" {l}")))
        .collect();
    let block = Block::bordered()
        .title(Span::styled(format!(" {} ", detail.title), BOLD))
        .title_bottom(Line::from(" esc closes ").alignment(Alignment::Right));
    frame.render_widget(Clear, area);
    let text = Paragraph::new(lines)
        .wrap(Wrap { trim: false })
        .block(block);
    frame.render_widget(text, area);
}
