//! Conversations under way: which one a request goes on with, and what it then carries.
//!
//! Real histories carry the answers that came, so their turns are encoded when they start. Scripted ones depend on no
//! answer: first turns are made ahead, and with the start of a turn the next one of its conversation is ordered from a
//! thread, which has the whole answer and the think time to make it. What is held is the conversations between two turns.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use tokio::sync::{mpsc, oneshot};

use crate::plan::History;
use crate::workload::Conversation;

use super::clock::Clock;
use super::lane::{Content, Lane};
use super::observe::Observer;
use super::prefetch::Ahead;
use super::start::Start;
use super::tally::Reply;
use super::threads;
use super::waits::Waits;

/// All conversations of a class, or of a run that is no mix.
pub(crate) struct Conversations {
    lane: Lane,
    /// Those begun with real histories.
    started: u64,
    script: Option<Script>,
    /// Between two turns, by the slot that goes on with them.
    by_slot: HashMap<u32, Pending>,
    /// Between two turns, for the next arrival: the one that has waited longest first.
    pool: BinaryHeap<Waiting>,
}

/// What must be given back when a turn has ended.
pub(crate) struct Turn {
    number: u64,
    /// The turn that comes after it.
    next: u32,
    slot: Option<u32>,
    /// None: the conversation ends with this turn.
    pending: Option<Pending>,
}

/// A conversation whose next turn is to come.
enum Pending {
    /// It lacks the answer.
    Real(Box<Conversation>),
    /// Its next turn is being made.
    Scripted(oneshot::Receiver<Made>),
}

/// A turn of a scripted conversation, and what is left of it.
struct Made {
    content: Content,
    rest: Option<Conversation>,
}

/// Where scripted turns come from.
struct Script {
    first_turns: Ahead<Made>,
    orders: mpsc::UnboundedSender<(Conversation, oneshot::Sender<Made>)>,
}

/// A conversation that waits for an arrival.
struct Waiting {
    /// When its user is ready, in nanoseconds since the run's start.
    ready: u64,
    number: u64,
    pending: Pending,
}

impl Conversations {
    /// The conversations of `lane`, none begun.
    pub(crate) fn start(lane: Lane, observer: &Observer) -> std::io::Result<Conversations> {
        let script = match lane.generator.talk().history {
            History::Scripted => Some(Script::start(&lane, observer)?),
            History::Real => None,
        };
        let (by_slot, pool) = (HashMap::new(), BinaryHeap::new());
        Ok(Conversations { lane, started: 0, script, by_slot, pool })
    }

    /// What the request that starts with `start` carries. None when the thread that makes scripts is gone.
    pub(crate) async fn next(&mut self, start: &Start, clock: Clock, waits: &mut Waits) -> Option<(Content, Turn)> {
        let pending = match start.slot {
            Some(slot) => self.by_slot.remove(&slot),
            None => self.ready(start.released),
        };
        let (number, content, pending) = match (&mut self.script, pending) {
            (Some(script), pending) => {
                let made = script.take(pending, clock, waits).await?;
                let number = made.content.conversation.unwrap_or_default();
                let pending = made.rest.map(|rest| script.order(rest));
                (number, made.content, pending)
            }
            (None, pending) => {
                let from = clock.now();
                let mut conversation = match pending {
                    Some(Pending::Real(conversation)) => conversation,
                    _ => {
                        self.started += 1;
                        Box::new(Conversation::new(&self.lane.generator, self.started - 1))
                    }
                };
                let content = self.lane.turn(&mut conversation)?;
                waits.add(from, clock.now());
                (conversation.number(), content, Some(Pending::Real(conversation)))
            }
        };
        let next = content.turn.unwrap_or_default() + 1;
        Some((content, Turn { number, next, slot: start.slot, pending }))
    }

    /// A turn has ended at `at`, with an answer or without. Says how long its user thinks before the next turn, in
    /// nanoseconds; none where the conversation is over: after its last turn, and where there is no answer to go on from.
    pub(crate) fn give_back(&mut self, turn: Turn, answer: Option<Reply>, at: u64) -> Option<u64> {
        let Turn { number, next, slot, pending } = turn;
        let pending = match (pending?, answer) {
            (Pending::Real(mut conversation), Some(answer)) => {
                conversation.answered(&self.lane.generator, answer.content, answer.tokens);
                conversation.prompt()?;
                Pending::Real(conversation)
            }
            (Pending::Real(_), None) => return None,
            (scripted, _) => scripted,
        };
        let think = self.lane.generator.think(number, next);
        match slot {
            Some(slot) => drop(self.by_slot.insert(slot, pending)),
            None => self.pool.push(Waiting { ready: at.saturating_add(think), number, pending }),
        }
        Some(think)
    }

    /// The conversation of the pool that has waited longest, if its user is done with thinking at `now`.
    fn ready(&mut self, now: u64) -> Option<Pending> {
        // Where nobody thinks, whoever is in the pool is ready.
        let is_ready =
            self.pool.peek().is_some_and(|first| first.ready <= now || self.lane.generator.talk().think.is_none());
        is_ready.then(|| self.pool.pop())?.map(|waiting| waiting.pending)
    }
}

impl Script {
    fn start(lane: &Lane, observer: &Observer) -> std::io::Result<Script> {
        let writer = lane.clone();
        let first_turns =
            (0..).filter_map(move |number| Made::new(Conversation::new(&writer.generator, number), &writer));
        let first_turns = Ahead::start(first_turns, |made: &Made| made.content.body.len(), observer.clone())?;
        let (orders, mut taken) = mpsc::unbounded_channel::<(Conversation, oneshot::Sender<Made>)>();
        let (lane, observer) = (lane.clone(), observer.clone());
        std::thread::Builder::new().name("script".to_owned()).spawn(move || {
            let _member = observer.enlist("script");
            threads::step_back();
            while let Some((conversation, reply)) = taken.blocking_recv() {
                if let Some(made) = Made::new(conversation, &lane) {
                    // Nobody waits for it when the run is over.
                    let _ = reply.send(made);
                }
            }
        })?;
        Ok(Script { first_turns, orders })
    }

    /// The turn that was ordered, or the first one of the next conversation.
    async fn take(&mut self, pending: Option<Pending>, clock: Clock, waits: &mut Waits) -> Option<Made> {
        let Some(Pending::Scripted(mut ordered)) = pending else {
            return self.first_turns.next(clock, waits).await;
        };
        if let Ok(made) = ordered.try_recv() {
            return Some(made);
        }
        let from = clock.now();
        let made = ordered.await.ok();
        waits.add(from, clock.now());
        made
    }

    /// Has the next turn made.
    fn order(&self, rest: Conversation) -> Pending {
        let (reply, made) = oneshot::channel();
        // A thread that is gone shows where the turn is taken.
        let _ = self.orders.send((rest, reply));
        Pending::Scripted(made)
    }
}

impl Made {
    /// The next turn of `conversation`; none after its last.
    fn new(mut conversation: Conversation, lane: &Lane) -> Option<Made> {
        let content = lane.turn(&mut conversation)?;
        conversation.scripted(&lane.generator);
        let rest = conversation.prompt().is_some().then_some(conversation);
        Some(Made { content, rest })
    }
}

impl Ord for Waiting {
    /// The greatest comes out of a heap first: the one that was ready first.
    fn cmp(&self, other: &Waiting) -> Ordering {
        (other.ready, other.number).cmp(&(self.ready, self.number))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}
