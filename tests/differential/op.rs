//! One step of a sequence, in terms that stay meaningful when the steps before it are taken away.

use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any as anything, prop_oneof},
};
use tenure::store::{Control, IdPolicy, Parking};

/// Names the how many-th of the claims made so far, from the newest; modulo how many there are.
pub(crate) type Pick = u8;

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Start(Vec<Start>),
    /// The same start call again, as after a lost reply.
    StartAgain,
    Claim(Claim),
    ClaimAgain,
    Settle {
        by: By,
        items: Vec<Settle>,
    },
    SettleAgain,
    Extend {
        by: By,
        items: Vec<Fence>,
        ttl: i64,
    },
    Release {
        by: By,
        items: Vec<Fence>,
        leave: bool,
    },
    Note {
        fence: Fence,
        number: u64,
        /// Its progress, and which shared values.
        progress: bool,
        shared: Vec<u8>,
    },
    Tick(Tick),
    /// Of few ids and names, so that some come again.
    Signal {
        id: u8,
        name: u8,
        number: u8,
        run: WhichRun,
    },
    Control {
        id: u8,
        control: Control,
        run: WhichRun,
    },
    /// The same control again, as after a lost reply.
    ControlAgain,
    Retry {
        id: u8,
        run: WhichRun,
        /// Whether the plan is for an older death.
        stale: bool,
        /// Which of the tasks begins again; the others go on, are taken back or stay as the numbers say.
        pick: u8,
        fates: u16,
        wait: i64,
    },
    RetryAgain,
    Watch {
        id: u8,
        run: WhichRun,
    },
    Pass(i64),
    Damage {
        id: u8,
        how: Damaging,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Start {
    pub(crate) id: u8,
    pub(crate) policy: IdPolicy,
    /// Milliseconds, from the start or as a time.
    pub(crate) begin: Begin,
    pub(crate) first: Vec<Queued>,
    pub(crate) max_crashes: u32,
    pub(crate) pauses: bool,
    pub(crate) waiter: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Begin {
    Now,
    After(i64),
    At(i64),
}

/// A node that becomes ready, in one of the two lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queued {
    pub(crate) list: bool,
    pub(crate) delay: i64,
}

#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) worker: u8,
    pub(crate) want: u16,
    pub(crate) lists: Lists,
    pub(crate) parking: Parking,
    pub(crate) ttl: i64,
    /// Timeout and deadline of every task, in milliseconds.
    pub(crate) bounds: Option<(Option<i64>, Option<i64>)>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Lists {
    First,
    Second,
    Both,
    Reversed,
}

/// Who makes a call: the worker that holds the first claim in it, or somebody else.
#[derive(Debug, Clone, Copy)]
pub(crate) enum By {
    Owner,
    Worker(u8),
}

#[derive(Debug, Clone)]
pub(crate) struct Settle {
    pub(crate) fence: Fence,
    pub(crate) verdict: Verdict,
    /// Which follow-up to claim, if it can be, and whether only when its list is empty.
    pub(crate) claim_next: Option<(u8, bool)>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Fence {
    pub(crate) pick: Pick,
    pub(crate) forged: Forged,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Forged {
    No,
    Nonce,
    Run,
    Attempt,
    Deadline,
}

#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    Completed {
        output: bool,
        follow_ups: Vec<Follow>,
    },
    Wait(Waiting),
    Retry(i64),
    Failed,
    Paused,
}

/// What a node waits for: one of two signals, at most so many milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) signal: bool,
    pub(crate) timeout: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Follow {
    Ready(Queued),
    Arrive { join: bool, need: u16 },
    Wait { list: bool, wait: Waiting },
    End,
}

#[derive(Debug, Clone)]
pub(crate) struct Tick {
    pub(crate) keeper: Option<u8>,
    pub(crate) promote: u32,
    pub(crate) reap: u32,
    pub(crate) prune: u32,
    /// How far the caller's clock is from the store's.
    pub(crate) expected: Option<i64>,
    pub(crate) crash_delay: i64,
    pub(crate) retention: i64,
}

impl Tick {
    /// One that does nothing but forget.
    pub(crate) const IDLE: Self = Self {
        keeper: None,
        promote: 0,
        reap: 0,
        prune: 0,
        expected: None,
        crash_delay: 0,
        retention: 0,
    };

    /// One that does all there is to do.
    pub(crate) const ALL: Self = Self {
        keeper: Some(0),
        promote: 100,
        reap: 100,
        prune: 100,
        expected: None,
        crash_delay: 100,
        retention: 3_600_000,
    };
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum WhichRun {
    Any,
    Newest,
    Older,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Damaging {
    Format,
    Task,
    Foreign,
}

/// Sequences of single calls and, between them, of those that lead far only in this order.
pub(crate) fn sequences(most: usize) -> impl Strategy<Value = Vec<Op>> {
    let steps = prop_oneof![
        5 => any().prop_map(|op| vec![op]),
        1 => expiry(),
    ];
    vec(steps, 1..most).prop_map(|steps| steps.concat())
}

/// Claims that expire while their worker shows itself, or does not; timers, deadlines and retentions that pass.
fn expiry() -> impl Strategy<Value = Vec<Op>> {
    let shows = Op::Extend {
        by: By::Owner,
        items: Vec::new(),
        ttl: 20_000,
    };
    let shows = prop_oneof![Just(Some(shows)), Just(None)];
    let passes =
        || prop_oneof![4 => Just(1_001), 2 => Just(5_001), 1 => Just(20_000), 1 => Just(4_000_000)];
    let ticks = || Just(Op::Tick(Tick::ALL));
    let claims = || claim().prop_map(Op::Claim);
    (
        claims(),
        shows,
        passes(),
        ticks(),
        passes(),
        ticks(),
        claims(),
    )
        .prop_map(|(before, shows, first, tick, second, tock, after)| {
            [
                vec![before],
                shows.into_iter().collect(),
                vec![Op::Pass(first), tick, Op::Pass(second), tock, after],
            ]
            .concat()
        })
}

fn any() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => vec(start(), 1..4).prop_map(Op::Start),
        1 => Just(Op::StartAgain),
        9 => claim().prop_map(Op::Claim),
        1 => Just(Op::ClaimAgain),
        9 => (by(), vec(settle(), 1..4)).prop_map(|(by, items)| Op::Settle { by, items }),
        1 => Just(Op::SettleAgain),
        3 => (by(), vec(fence(), 0..3), ttl())
            .prop_map(|(by, items, ttl)| Op::Extend { by, items, ttl }),
        2 => (by(), vec(fence(), 0..3), rarely())
            .prop_map(|(by, items, leave)| Op::Release { by, items, leave }),
        2 => (fence(), 1..4_u64, anything::<bool>(), vec(0..70_u8, 0..17))
            .prop_map(|(fence, number, progress, shared)| Op::Note { fence, number, progress, shared }),
        6 => tick().prop_map(Op::Tick),
        6 => (0..3_u8, 0..5_u8, 0..8_u8, which_run())
            .prop_map(|(id, name, number, run)| Op::Signal { id, name, number, run }),
        4 => (0..3_u8, control(), which_run())
            .prop_map(|(id, control, run)| Op::Control { id, control, run }),
        1 => Just(Op::ControlAgain),
        3 => (0..3_u8, which_run(), rarely(), anything::<u8>(), anything::<u16>(), delay())
            .prop_map(|(id, run, stale, pick, fates, wait)| Op::Retry { id, run, stale, pick, fates, wait }),
        1 => Just(Op::RetryAgain),
        1 => (0..3_u8, which_run()).prop_map(|(id, run)| Op::Watch { id, run }),
        5 => pass().prop_map(Op::Pass),
        1 => (0..3_u8, damaging()).prop_map(|(id, how)| Op::Damage { id, how }),
    ]
}

fn start() -> impl Strategy<Value = Start> {
    let begin = prop_oneof![
        6 => Just(Begin::Now),
        1 => delay().prop_map(Begin::After),
        1 => (-50..50_i64).prop_map(Begin::At),
    ];
    let policy = prop_oneof![
        Just(IdPolicy::Fail),
        Just(IdPolicy::UseExisting),
        Just(IdPolicy::ReplaceFinished),
        Just(IdPolicy::TerminateAndReplace),
    ];
    (
        0..3_u8,
        policy,
        begin,
        vec(queued(), 1..4),
        0..3_u32,
        anything::<bool>(),
        anything::<bool>(),
    )
        .prop_map(
            |(id, policy, begin, first, max_crashes, pauses, waiter)| Start {
                id,
                policy,
                begin,
                first,
                max_crashes,
                pauses,
                waiter,
            },
        )
}

fn queued() -> impl Strategy<Value = Queued> {
    let delay = prop_oneof![4 => Just(0), 1 => delay()];
    (anything::<bool>(), delay).prop_map(|(list, delay)| Queued { list, delay })
}

fn delay() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), Just(1), 1..60_i64, Just(1_500)]
}

fn claim() -> impl Strategy<Value = Claim> {
    let lists = prop_oneof![
        Just(Lists::First),
        Just(Lists::Second),
        Just(Lists::Both),
        Just(Lists::Reversed),
    ];
    let parking = prop_oneof![
        Just(Parking::Never),
        Just(Parking::WhenShort),
        Just(Parking::Parked),
    ];
    let bound = || proptest::option::of(prop_oneof![Just(30), Just(800), Just(2_000)]);
    let bounds = proptest::option::weighted(0.4, (bound(), bound()));
    (0..3_u8, 0..5_u16, lists, parking, ttl(), bounds).prop_map(
        |(worker, want, lists, parking, ttl, bounds)| Claim {
            worker,
            want,
            lists,
            parking,
            ttl,
            bounds,
        },
    )
}

fn ttl() -> impl Strategy<Value = i64> {
    prop_oneof![1 => Just(1), 1 => Just(50), 4 => Just(1_000), 1 => Just(20_000)]
}

fn by() -> impl Strategy<Value = By> {
    prop_oneof![6 => Just(By::Owner), 1 => (0..3_u8).prop_map(By::Worker)]
}

fn fence() -> impl Strategy<Value = Fence> {
    let pick = prop_oneof![4 => 0..3_u8, 1 => anything::<u8>()];
    let forged = prop_oneof![
        12 => Just(Forged::No),
        1 => Just(Forged::Nonce),
        1 => Just(Forged::Run),
        1 => Just(Forged::Attempt),
        1 => Just(Forged::Deadline),
    ];
    (pick, forged).prop_map(|(pick, forged)| Fence { pick, forged })
}

fn waiting() -> impl Strategy<Value = Waiting> {
    let timeout = proptest::option::of(delay());
    (anything::<bool>(), timeout).prop_map(|(signal, timeout)| Waiting { signal, timeout })
}

fn settle() -> impl Strategy<Value = Settle> {
    let follow = prop_oneof![
        4 => queued().prop_map(Follow::Ready),
        3 => (anything::<bool>(), 1..4_u16).prop_map(|(join, need)| Follow::Arrive { join, need }),
        3 => (anything::<bool>(), waiting()).prop_map(|(list, wait)| Follow::Wait { list, wait }),
        1 => Just(Follow::End),
    ];
    let verdict = prop_oneof![
        6 => (anything::<bool>(), vec(follow, 0..4))
            .prop_map(|(output, follow_ups)| Verdict::Completed { output, follow_ups }),
        2 => waiting().prop_map(Verdict::Wait),
        3 => delay().prop_map(Verdict::Retry),
        2 => Just(Verdict::Failed),
        1 => Just(Verdict::Paused),
    ];
    let claim_next = proptest::option::of((0..4_u8, anything::<bool>()));
    (fence(), verdict, claim_next).prop_map(|(fence, verdict, claim_next)| Settle {
        fence,
        verdict,
        claim_next,
    })
}

fn tick() -> impl Strategy<Value = Tick> {
    let most = || prop_oneof![1 => Just(0_u32), 2 => Just(1), 1 => Just(2), 6 => Just(100)];
    let expected = proptest::option::of(prop_oneof![
        Just(0),
        Just(2_000),
        Just(-2_000),
        Just(2_001),
        Just(-2_001)
    ]);
    let retention = prop_oneof![Just(0), Just(3_600_000)];
    let keeper = proptest::option::of(0..3_u8);
    let crash_delay = prop_oneof![Just(0), Just(100), Just(50_000)];
    (
        keeper,
        most(),
        most(),
        most(),
        expected,
        crash_delay,
        retention,
    )
        .prop_map(
            |(keeper, promote, reap, prune, expected, crash_delay, retention)| Tick {
                keeper,
                promote,
                reap,
                prune,
                expected,
                crash_delay,
                retention,
            },
        )
}

fn control() -> impl Strategy<Value = Control> {
    prop_oneof![
        1 => Just(Control::Cancel),
        1 => Just(Control::Terminate),
        4 => Just(Control::Pause),
        4 => Just(Control::Resume),
        1 => Just(Control::Delete),
    ]
}

fn which_run() -> impl Strategy<Value = WhichRun> {
    prop_oneof![
        Just(WhichRun::Any),
        Just(WhichRun::Newest),
        Just(WhichRun::Older)
    ]
}

fn pass() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 1..60_i64,
        2 => Just(500),
        6 => Just(1_001),
        2 => Just(5_001),
        2 => Just(20_000),
        2 => Just(61_000),
        1 => Just(4_000_000),
        1 => Just(-3_600_000),
        1 => Just(-700),
    ]
}

fn damaging() -> impl Strategy<Value = Damaging> {
    prop_oneof![
        Just(Damaging::Format),
        Just(Damaging::Task),
        Just(Damaging::Foreign)
    ]
}

fn rarely() -> impl Strategy<Value = bool> {
    proptest::bool::weighted(0.2)
}
