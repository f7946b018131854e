//! The claims of threads: slices are claimed in order, and finished, or left to others, in any.

use super::part::{Claim, Part};
use super::{EpochShared, Ring, Slot};
use crate::skip::Failed;
use std::sync::PoisonError;
use std::time::Duration;
use wellread_store::Result;
use wellread_trace::{Kind, span};

/// The time that a worker waits for the consumer to drop a large batch when it has been given the next one.
/// Python does so a moment after. New memory takes longer to write to, and stays.
const MAX_BUFFER_WAIT: Duration = Duration::from_millis(10);

impl EpochShared {
    /// The next slice or run of batches to work on; sleeps while the ring is full. `None` when there is nothing left.
    pub(super) fn claim(&self) -> Option<Claim> {
        let mut ring = self.lock();
        let mut buffer_wait = MAX_BUFFER_WAIT;
        loop {
            if self.is_stopped()
                || ring.next_batch == self.batches && ring.active_parts == 0 && ring.leftover.is_empty()
            {
                return None;
            }
            let pool = &self.loader.pool;
            if !buffer_wait.is_zero()
                && self.starts_batch(&ring)
                && pool.should_wait_for_buffer(ring.slots.len() + 1)
            {
                drop(ring);
                let _wait = span(Kind::WaitRoom);
                buffer_wait = pool.wait_for_return(buffer_wait, &self.stop);
                ring = self.lock();
                continue;
            }
            if let Some(claim) = self.claim_now(&mut ring) {
                return Some(claim);
            }
            ring.idle_workers += 1;
            let _wait = span(Kind::WaitRoom);
            ring = self.work_available.wait(ring).unwrap_or_else(PoisonError::into_inner);
            ring.idle_workers -= 1;
            buffer_wait = MAX_BUFFER_WAIT;
        }
    }

    /// Whether the next claim is of a batch that has no memory yet.
    fn starts_batch(&self, ring: &Ring) -> bool {
        let is_begun = ring.next_slice > 0 || !ring.leftover.is_empty();
        !is_begun && ring.next_batch < self.batches && ring.next_batch - ring.delivered < ring.slots.len()
    }

    /// The next slice or run of batches to work on, if there is one and room for it.
    pub(super) fn claim_now(&self, ring: &mut Ring) -> Option<Claim> {
        loop {
            if let Some(first) = ring.leftover.pop_front() {
                ring.active_parts += 1;
                return Some(Claim { first, more: vec![] });
            }
            let wanted = self.loader.plan.read_ahead.joined.min(self.batches - ring.next_batch);
            if wanted == 0 || ring.slots.len() - (ring.next_batch - ring.delivered) < wanted {
                return None;
            }
            let Some(first) = self.claim_part(ring) else { continue };
            let mut more = vec![];
            for _ in 1..wanted {
                more.extend(self.claim_part(ring));
            }
            ring.active_parts += 1 + more.len();
            return Some(Claim { first, more });
        }
    }

    /// Claims the next slice, for which there is room. `None` where there is no memory: the batch is an error then.
    fn claim_part(&self, ring: &mut Ring) -> Option<Part> {
        let (batch, slice) = (ring.next_batch, ring.next_slice);
        let slices = self.slices(batch);
        let index = batch % ring.slots.len();
        if slice == 0 {
            match self.take_buffer(batch) {
                Ok(buffer) => {
                    ring.slots[index] = Slot { buffer: Some(buffer), pending: slices, ..Slot::default() };
                }
                Err(error) => {
                    ring.slots[index] = Slot { error: Some((0, error)), ..Slot::default() };
                    ring.next_batch += 1;
                    self.wake_consumer(ring);
                    return None;
                }
            }
        }
        (ring.next_batch, ring.next_slice) =
            if slice + 1 == slices { (batch + 1, 0) } else { (batch, slice + 1) };
        let (positions, within) = self.slice(batch, slice);
        let arrays = &self.loader.plan.layout;
        let buffer = ring.slots[index].buffer.as_mut().expect("made with the batch's first slice");
        Some(Part { batch, first: within.start, positions, memory: buffer.part(within, arrays) })
    }

    pub(super) fn finish(&self, part: &Part, result: Result<Failed>) {
        let mut ring = self.lock();
        let index = part.batch % ring.slots.len();
        let slot = &mut ring.slots[index];
        match result {
            Ok(failed) => slot.failed.extend(failed),
            Err(error) => {
                if slot.error.as_ref().is_none_or(|(first, _)| part.first < *first) {
                    slot.error = Some((part.first, error));
                }
            }
        }
        slot.pending -= 1;
        if slot.pending == 0 && part.batch == ring.delivered {
            self.wake_consumer(&mut ring);
        }
        ring.active_parts -= 1;
        if ring.active_parts == 0 && ring.next_batch == self.batches {
            // Nothing will be left to others any more.
            self.work_available.notify_all();
        }
    }

    /// Queues a part for whoever is idle.
    pub(super) fn push_leftover(&self, part: Part) {
        let mut ring = self.lock();
        let index = part.batch % ring.slots.len();
        ring.slots[index].pending += 1;
        ring.leftover.push_back(part);
        if ring.idle_workers > 0 {
            self.work_available.notify_one();
        } else {
            // The consumer reads too, and may sleep since there was nothing to claim.
            self.wake_consumer(&mut ring);
        }
    }
}
