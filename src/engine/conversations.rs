//! The conversations in progress. This module determines which conversation a request continues, and
//! creates the content of the request.
//!
//! A conversation with a real history contains the received responses, so each of its turns is encoded when
//! the turn starts. Scripted conversations do not depend on responses, so their first turns are prepared
//! ahead. When a scripted turn starts, a separate thread begins to prepare the next turn of that
//! conversation, which may take as long as the response and the think time together. Only conversations
//! between two turns are held in memory.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use tokio::sync::{mpsc, oneshot};

use crate::plan::History;
use crate::workload::Conversation;

use super::clock::Clock;
use super::lane::{Content, Lane};
use super::observe::Observer;
use super::prefetch::Ahead;
use super::share::Share;
use super::start::Start;
use super::tally::Reply;
use super::threads;
use super::waits::Waits;

/// All conversations of a class, or of a run that is not a mix.
pub(crate) struct Conversations {
    lane: Lane,
    share: Share,
    /// The number of conversations with real histories that were started.
    started: u64,
    script: Option<Script>,
    /// Conversations between two turns in a closed loop, by the slot that continues them.
    by_slot: HashMap<u32, Pending>,
    /// Conversations between two turns in an open loop, where any arrival may continue them, ordered by when
    /// their users became ready.
    pool: BinaryHeap<Waiting>,
}

/// A turn in progress. The caller passes it to `give_back` when the turn has ended.
pub(crate) struct Turn {
    number: u64,
    /// The index of the next turn.
    next: u32,
    slot: Option<u32>,
    /// The rest of the conversation; `None` if it ends with this turn.
    pending: Option<Pending>,
}

/// A conversation whose next turn has not started.
enum Pending {
    /// With a real history: the next turn cannot be created before the response has arrived.
    Real(Box<Conversation>),
    /// Scripted: the next turn is being prepared, or is ready.
    Scripted(oneshot::Receiver<Made>),
}

/// A prepared turn of a scripted conversation, and the rest of the conversation (`None` after the last
/// turn).
struct Made {
    content: Content,
    rest: Option<Conversation>,
}

/// The source of scripted turns.
struct Script {
    first_turns: Ahead<Made>,
    orders: mpsc::UnboundedSender<(Conversation, oneshot::Sender<Made>)>,
}

/// A conversation that waits for an arrival to continue it.
struct Waiting {
    /// When the user of the conversation is ready, in nanoseconds since the run's start.
    ready: u64,
    number: u64,
    pending: Pending,
}

impl Conversations {
    /// Creates the conversations of `lane` that belong to `share`; none of them has started.
    pub(crate) fn start(lane: Lane, share: Share, observer: &Observer) -> std::io::Result<Conversations> {
        let script = match lane.generator.talk().history {
            History::Scripted => Some(Script::start(&lane, share, observer)?),
            History::Real => None,
        };
        let (by_slot, pool) = (HashMap::new(), BinaryHeap::new());
        Ok(Conversations { lane, share, started: 0, script, by_slot, pool })
    }

    /// Returns the content of the request that begins with `start`. `None` if the thread that prepares
    /// scripted turns is gone.
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
                        let number = self.share.number(self.started - 1);
                        Box::new(Conversation::new(&self.lane.generator, number))
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

    /// Records that a turn has ended at `at`, with or without a response. Returns how long the user thinks
    /// before the next turn, in nanoseconds. `None` if the conversation is over, because this was its last
    /// turn, or because it has a real history and there is no response to continue from.
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

    /// Takes from the pool the conversation whose user was ready first, if that user has finished thinking by
    /// `now`.
    fn ready(&mut self, now: u64) -> Option<Pending> {
        // Without think times, every conversation in the pool is ready.
        let is_ready =
            self.pool.peek().is_some_and(|first| first.ready <= now || self.lane.generator.talk().think.is_none());
        is_ready.then(|| self.pool.pop())?.map(|waiting| waiting.pending)
    }
}

impl Script {
    fn start(lane: &Lane, share: Share, observer: &Observer) -> std::io::Result<Script> {
        let writer = lane.clone();
        let numbers = (0..).map(move |local| share.number(local));
        let first_turns =
            numbers.filter_map(move |number| Made::new(Conversation::new(&writer.generator, number), &writer));
        let first_turns = Ahead::start(first_turns, |made: &Made| made.content.body.len(), observer.clone())?;
        let (orders, mut taken) = mpsc::unbounded_channel::<(Conversation, oneshot::Sender<Made>)>();
        let (lane, observer) = (lane.clone(), observer.clone());
        std::thread::Builder::new().name("script".to_owned()).spawn(move || {
            let _member = observer.enlist("script");
            threads::step_back();
            while let Some((conversation, reply)) = taken.blocking_recv() {
                if let Some(made) = Made::new(conversation, &lane) {
                    // The receiver is gone when the run is over.
                    let _ = reply.send(made);
                }
            }
        })?;
        Ok(Script { first_turns, orders })
    }

    /// Returns the turn whose preparation was requested in advance (`pending`); if this is `None`, the first
    /// turn of the next conversation.
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

    /// Requests the preparation of the next turn of `rest`.
    fn order(&self, rest: Conversation) -> Pending {
        let (reply, made) = oneshot::channel();
        // If the thread is gone, the error is noticed when the turn is needed.
        let _ = self.orders.send((rest, reply));
        Pending::Scripted(made)
    }
}

impl Made {
    /// Prepares the next turn of `conversation`; `None` after its last turn.
    fn new(mut conversation: Conversation, lane: &Lane) -> Option<Made> {
        let content = lane.turn(&mut conversation)?;
        conversation.scripted(&lane.generator);
        let rest = conversation.prompt().is_some().then_some(conversation);
        Some(Made { content, rest })
    }
}

impl Ord for Waiting {
    /// A heap returns the greatest item first, so the conversation that was ready first must be the
    /// greatest.
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
