//! Asking the processor to fetch memory that is going to be copied.
//!
//! Images of a shuffled batch lie anywhere in a mapped file. Small ones are over before the processor has seen where
//! they go on. So each costs the time of a look into main memory, one after the other. A thread that knows the rows of
//! several images first prefetches them all, and copies them then.

/// Bytes that are asked for of each image: of what follows, the processor notices by itself that it is wanted.
const MAX_PREFETCH_BYTES: usize = 1024;
/// Bytes that the processor fetches at once.
const CACHE_LINE_BYTES: usize = 64;

/// Has the first bytes of `values` fetched, as a hint: nothing is waited for, and nothing changes.
#[inline]
pub fn prefetch<T>(values: &[T]) {
    for at in (0..size_of_val(values).min(MAX_PREFETCH_BYTES)).step_by(CACHE_LINE_BYTES) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: SSE is part of x86-64, and the hint reads nothing, whatever the address is.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().wrapping_byte_add(at).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_length_can_be_asked_for() {
        let bytes = vec![1u8; 5000];
        for length in [0, 1, 63, 64, 65, 1023, 1024, 1025, 5000] {
            super::prefetch(&bytes[..length]);
            super::prefetch(&bytes[5000 - length..]);
        }
        assert!(bytes.iter().all(|&b| b == 1));
    }
}
