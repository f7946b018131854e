//! Holds requests of the tests' server back until enough of them are there. That shows, without a clock, how many are
//! made at once.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::TcpStream;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many requests for bytes of a bucket, or with bytes for it, have to be there at once before any is answered. It also has how many
/// were.
#[derive(Debug, Default)]
struct Gate {
    wanted: usize,
    now: usize,
    most: usize,
    /// Requests whose client has hung up while they waited.
    given_up: usize,
    /// Requests of each round that is still to come.
    rounds: VecDeque<usize>,
    /// Requests of the next one that are there.
    arrived: usize,
    /// Rounds that were answered.
    answered: usize,
}

static GATES: LazyLock<Mutex<HashMap<String, Gate>>> = LazyLock::new(Mutex::default);
static GATE_MOVED: Condvar = Condvar::new();

fn gates() -> MutexGuard<'static, HashMap<String, Gate>> {
    GATES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers no request for bytes of a bucket until so many are there at once; then all of them, for good.
pub(crate) fn hold(bucket: &str, requests: usize) {
    gates().entry(bucket.to_owned()).or_default().wanted = requests;
    GATE_MOVED.notify_all();
}

/// Answers the next requests for a bucket, of whatever kind, in rounds of so many. Each round when all of it are there, and none before
/// the round before it. So a program that gets through takes no more round trips than these.
pub(crate) fn expect_rounds(bucket: &str, rounds: &[usize]) {
    let mut gates = gates();
    let gate = gates.entry(bucket.to_owned()).or_default();
    gate.rounds = rounds.iter().copied().collect();
    gate.arrived = 0;
}

/// Rounds that are still to come.
pub(crate) fn rounds_left(bucket: &str) -> usize {
    gates().get(bucket).map_or(0, |gate| gate.rounds.len())
}

/// Lets a request through when all of its round are there; false where nobody waits for the answer any more.
pub(crate) fn pass_round(bucket: &str, connection: &TcpStream) -> bool {
    let mut gates = gates();
    let Some(gate) = gates.get_mut(bucket).filter(|gate| !gate.rounds.is_empty()) else { return true };
    let round = gate.answered;
    gate.arrived += 1;
    if gate.rounds.front().is_some_and(|wanted| gate.arrived >= *wanted) {
        gate.rounds.pop_front();
        (gate.arrived, gate.answered) = (0, round + 1);
        GATE_MOVED.notify_all();
        return true;
    }
    while let Some(gate) = gates.get_mut(bucket).filter(|gate| gate.answered == round) {
        if is_closed(connection) {
            gate.arrived -= 1;
            return false;
        }
        let look = Duration::from_millis(10);
        (gates, _) = GATE_MOVED.wait_timeout(gates, look).unwrap_or_else(PoisonError::into_inner);
    }
    true
}

/// The most requests for bytes of a bucket that were there at once.
pub(crate) fn most_at_once(bucket: &str) -> usize {
    gates().get(bucket).map_or(0, |gate| gate.most)
}

fn wait(bucket: &str, is_so: impl Fn(&Gate) -> bool) {
    let mut gates = gates();
    while !gates.get(bucket).is_some_and(&is_so) {
        gates = GATE_MOVED.wait(gates).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Waits until so many requests for bytes of a bucket are there at once.
pub(crate) fn wait_for(bucket: &str, requests: usize) {
    wait(bucket, |gate| gate.now >= requests);
}

/// Waits until so many of those that were held were given up.
pub(crate) fn wait_for_given_up(bucket: &str, requests: usize) {
    wait(bucket, |gate| gate.given_up >= requests);
}

/// A request that is there.
pub(crate) struct Passing<'a>(&'a str);

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        if let Some(gate) = gates().get_mut(self.0) {
            gate.now -= 1;
        }
    }
}

/// Lets a request through the gate of its bucket; `None` where nobody waits for the answer any more.
pub(crate) fn pass<'a>(bucket: &'a str, connection: &TcpStream) -> Option<Passing<'a>> {
    let mut gates = gates();
    let gate = gates.entry(bucket.to_owned()).or_default();
    gate.now += 1;
    gate.most = gate.most.max(gate.now);
    let passing = Passing(bucket);
    GATE_MOVED.notify_all();
    while let Some(gate) = gates.get_mut(bucket) {
        if gate.now >= gate.wanted {
            gate.wanted = 0;
        }
        if gate.wanted == 0 {
            GATE_MOVED.notify_all();
            break;
        }
        if is_closed(connection) {
            gate.given_up += 1;
            GATE_MOVED.notify_all();
            drop(gates);
            return None;
        }
        let look = Duration::from_millis(10);
        (gates, _) = GATE_MOVED.wait_timeout(gates, look).unwrap_or_else(PoisonError::into_inner);
    }
    drop(gates);
    Some(passing)
}

/// Whether the other end has hung up.
fn is_closed(connection: &TcpStream) -> bool {
    if connection.set_nonblocking(true).is_err() {
        return true;
    }
    let ended = match connection.peek(&mut [0]) {
        Ok(bytes) => bytes == 0,
        Err(e) => e.kind() != io::ErrorKind::WouldBlock,
    };
    connection.set_nonblocking(false).is_err() || ended
}
