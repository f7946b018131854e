//! Buffers that come back, that are waited for, of others, and in forked processes.

use super::*;
use crate::{Batch, DType};
use std::ptr::NonNull;
use wellread_image::Shape;

/// The one array of batches whose images have this shape, as `f32`.
fn one(shape: Shape) -> Arc<[ArrayLayout]> {
    [ArrayLayout::alone(shape.pixels() * 4, shape, DType::F32)].into()
}

#[test]
fn large_buffers_are_zero_and_can_be_written_to() {
    for len in [
        MIN_LARGE_PAGE_BYTES - 1,
        MIN_LARGE_PAGE_BYTES,
        MIN_LARGE_PAGE_BYTES + 1,
        MIN_LARGE_PAGE_BYTES + (2 << 20) + 4097,
    ] {
        let mut buffer = AlignedBytes::new(len).unwrap();
        assert_eq!(buffer.as_slice().len(), len);
        assert!(buffer.as_slice().iter().all(|&byte| byte == 0));
        buffer.as_mut_slice().fill(7);
        assert!(buffer.as_slice().iter().all(|&byte| byte == 7));
    }
}

#[cfg(all(target_os = "linux", not(miri), not(feature = "portable")))]
#[test]
fn what_a_forked_process_lacks_is_not_taken_apart_there() {
    let buffer = AlignedBytes::new(MIN_LARGE_PAGE_BYTES).unwrap();
    // SAFETY: the child maps, drops, asks and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let place = buffer.start.as_ptr().cast();
        let (access, kind) = (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: where the buffer was there is nothing; another mapping may lie there, as this one is asked to.
        let other = unsafe { libc::mmap(place, MIN_LARGE_PAGE_BYTES, access, kind, -1, 0) };
        drop(buffer);
        // SAFETY: it asks whether pages are mapped, which an error would deny.
        let there = unsafe { libc::msync(other, MIN_LARGE_PAGE_BYTES, libc::MS_ASYNC) } == 0;
        // SAFETY: it ends the process without what the parent has registered.
        unsafe { libc::_exit(i32::from(!(there && other == place))) };
    }
    let mut status = -1;
    // SAFETY: the child is this process's, and the status may be written to.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}

#[test]
fn memory_is_aligned_reused_and_bounded() {
    let pool = Arc::new(BufferPool::new(400, 2, 2, None));
    let shape = Shape([1, 2, 1, 5, 5]);
    let mut first = Batch::new(pool.take().unwrap(), pool.clone(), one(shape), 1, [2, 1], (0, 0));
    assert_eq!((first.shape(), first.pixels().len()), (&[2, 2, 5, 5][..], 100));
    assert_eq!(first.pixels().as_ptr() as usize % 64, 0);
    first.pixels_mut()[99] = 1.0;
    let address = first.bytes().as_ptr();
    drop(first);
    let again = pool.take().unwrap();
    assert_eq!(again.pixels.as_slice().as_ptr(), address);
    assert_eq!(again.pixels.as_slice()[396..], 1f32.to_le_bytes());
    for _ in 0..4 {
        let pixels = AlignedBytes::new(1).unwrap();
        pool.give(BatchBuffer { pixels, rows: vec![], occurrences: vec![] });
    }
    assert_eq!(pool.lock().free.len(), 2);
    assert!(BufferPool::new(usize::MAX / 2 - 7, 1, 1, None).take().is_none());
}

#[test]
fn a_large_buffer_that_is_about_to_come_back_is_waited_for() {
    let (minute, go_on) = (Duration::from_mins(1), AtomicBool::new(false));
    let pool = Arc::new(BufferPool::new(MIN_LARGE_PAGE_BYTES, 1, 2, None));
    let first = pool.take().unwrap();
    assert!(!pool.should_wait_for_buffer(2), "one is in use");
    let second = pool.take().unwrap();
    assert!(pool.should_wait_for_buffer(2));
    let address = first.pixels.start;
    // The second of two waiters goes on, too, to see whether there is something else to do.
    std::thread::scope(|threads| {
        let waits = || pool.wait_for_return(minute, &go_on);
        let both = [threads.spawn(waits), threads.spawn(waits)];
        while pool.lock().waiting < 2 {
            std::thread::yield_now();
        }
        pool.give(first);
        let left = both.map(|thread| thread.join().unwrap());
        assert!(left.iter().all(|left| !left.is_zero()), "{left:?}");
    });
    assert!(!pool.should_wait_for_buffer(2));
    assert_eq!(pool.take().unwrap().pixels.start, address);
    assert!(pool.should_wait_for_buffer(2), "no wait was futile");
    pool.wait_for_return(minute, &AtomicBool::new(true));
    assert_eq!(pool.wait_for_return(Duration::from_millis(1), &go_on), Duration::ZERO);
    assert!(!pool.should_wait_for_buffer(2), "the wait was futile");
    let _third = [pool.take().unwrap(), pool.take().unwrap()];
    assert!(pool.should_wait_for_buffer(2), "twice as many are in use");
    pool.give(second);
    assert!(!pool.should_wait_for_buffer(2));
    let small = BufferPool::new(MIN_LARGE_PAGE_BYTES - 1, 1, 2, None);
    let _one = small.take();
    assert!(!small.should_wait_for_buffer(1), "a new one is there sooner");
}

#[cfg(all(target_os = "linux", not(miri), not(feature = "portable")))]
#[test]
fn a_forked_process_has_what_was_delivered_and_nothing_else() {
    let pool = Arc::new(BufferPool::new(MIN_LARGE_PAGE_BYTES, 1, 4, None));
    let shape = Shape::plane(MIN_LARGE_PAGE_BYTES / 4096, 1024);
    let batch = |filled: u8| {
        let mut buffer = pool.take().unwrap();
        buffer.pixels.as_mut_slice().fill(filled);
        Batch::new(buffer, Arc::clone(&pool), one(shape), 1, [1, 1], (0, 0))
    };
    let (kept, back) = (batch(7), batch(9));
    let lacked = back.bytes().as_ptr();
    drop(back);
    // SAFETY: the child looks at memory, frees some of it by the kernel, and leaves at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_there = kept.bytes().iter().all(|&byte| byte == 7);
        let mut resident = 0u8;
        // SAFETY: the kernel says of a page whether it is mapped; its content is not looked at.
        let lacks = unsafe { libc::mincore(lacked.cast_mut().cast(), 1, &raw mut resident) } != 0;
        drop(kept);
        drop(pool);
        // SAFETY: it ends the process without what the parent has registered.
        unsafe { libc::_exit(i32::from(!is_there) + 2 * i32::from(!lacks)) };
    }
    let mut status = -1;
    // SAFETY: the child is this process's, and the status may be written to.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    let again = pool.take().unwrap();
    assert_eq!(again.pixels.as_slice().as_ptr(), lacked);
    assert!(again.pixels.as_slice().iter().all(|&byte| byte == 9));
    assert!(kept.bytes().iter().all(|&byte| byte == 7));
}

/// Lends out one piece of memory at a time.
struct Lender(Mutex<Vec<AlignedBytes>>, Mutex<Vec<usize>>);

// SAFETY: each piece is lent once at a time, and is as large as is asserted.
unsafe impl BatchMemory for Lender {
    fn take(&self, bytes: usize) -> Option<NonNull<u8>> {
        let piece = self.0.lock().unwrap().pop()?;
        assert_eq!(piece.len, bytes);
        let start = piece.start;
        std::mem::forget(piece);
        Some(start)
    }

    fn give(&self, start: NonNull<u8>, bytes: usize) {
        assert_eq!(bytes, 64);
        self.1.lock().unwrap().push(start.addr().get());
    }
}

#[test]
fn memory_of_others_goes_back_to_them() {
    let piece = || AlignedBytes::new(64).unwrap();
    let lender = Arc::new(Lender(Mutex::new(vec![piece(), piece()]), Mutex::default()));
    let pool = Arc::new(BufferPool::new(64, 1, 2, Some(lender.clone())));
    let shape = Shape::plane(4, 4);
    let batch =
        |pool: &Arc<BufferPool>| Some(Batch::new(pool.take()?, pool.clone(), one(shape), 1, [1, 1], (0, 0)));
    let (first, second) = (batch(&pool).unwrap(), batch(&pool).unwrap());
    assert!(batch(&pool).is_none());
    let address = first.bytes().as_ptr().addr();
    drop(first);
    assert_eq!(*lender.1.lock().unwrap(), [address]);
    let second_address = second.bytes().as_ptr().addr();
    assert_eq!(second.release().unwrap().addr().get(), second_address);
    assert_eq!(lender.1.lock().unwrap().len(), 1);
    let own = Arc::new(BufferPool::new(64, 1, 1, None));
    assert!(batch(&own).unwrap().release().is_none());
}

#[test]
fn images_are_taken_out_of_all_arrays_and_the_others_close_up() {
    let arrays = [(Shape::plane(1, 2), DType::U8), (Shape::plane(1, 1), DType::F32)];
    let (arrays, bytes) = lay_out(arrays.into_iter(), 1, 6).unwrap();
    for bits in 0u32..64 {
        let mut buffer = BufferPool::new(bytes, 6, 1, None).take().unwrap();
        for i in 0..6 {
            buffer.rows[i] = i;
            buffer.occurrences[i] = 10 + i as u64;
            let mut fill = buffer.fill(0..1, i..i + 1, &arrays);
            fill.pixels.array(0).fill(i as u8);
            fill.pixels.array(1).fill(100 + i as u8);
        }
        buffer.remove((0..6).filter(|i| bits >> i & 1 == 1), 6, &arrays);
        for (at, row) in (0..6).filter(|i| bits >> i & 1 == 0).enumerate() {
            assert_eq!((buffer.rows[at], buffer.occurrences[at]), (row, 10 + row as u64));
            assert_eq!(buffer.pixels.as_slice()[2 * at..2 * at + 2], [row as u8; 2]);
            assert_eq!(buffer.pixels.as_slice()[64 + 4 * at..64 + 4 * at + 4], [100 + row as u8; 4]);
        }
    }
}
