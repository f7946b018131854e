//! Pages that are kept, pages that go, and threads that wait for each other.

use super::*;

#[test]
fn a_lower_limit_holds_at_once_and_for_good() {
    let cache = Cache::new(1 << 20);
    let entry = |_| Ok(Entry::Pixels(vec![0; 1000]));
    (0..20).for_each(|page| drop(cache.get(key(page), entry).unwrap()));
    assert_eq!(cache.bytes(), 20 * 1064);
    cache.limit(5000);
    assert!(cache.bytes() <= 5000);
    cache.limit(1 << 30);
    assert_eq!(cache.capacity(), 5000);
    (20..40).for_each(|page| drop(cache.get(key(page), entry).unwrap()));
    assert!(cache.bytes() <= 5000);
    // The latest entry is always kept.
    cache.limit(0);
    assert_eq!(cache.bytes(), 1064);
}

#[test]
fn what_is_forgotten_is_loaded_again() {
    let cache = Cache::new(1 << 20);
    let loads = AtomicUsize::new(0);
    let read = || {
        for page in 0..3 {
            let load = |_| {
                loads.fetch_add(1, Ordering::Relaxed);
                Ok(Entry::Pixels(vec![0; 1000]))
            };
            drop(cache.get(key(page), load).unwrap());
        }
    };
    read();
    read();
    assert_eq!(loads.load(Ordering::Relaxed), 3, "the second epoch finds them");
    cache.forget();
    assert_eq!(cache.bytes(), 0);
    read();
    assert_eq!(loads.load(Ordering::Relaxed), 6);
    assert_eq!(cache.capacity(), 1 << 20, "and they are kept again");
}

fn key(page: u32) -> Key {
    Key { group: 0, source: 0, page, dtype: PixelType::U8 }
}

#[test]
fn the_bound_holds_and_what_is_used_stays() {
    let cache = Cache::new(10 * 1064);
    let loads = AtomicUsize::new(0);
    let get = |page| {
        cache
            .get(key(page), |_| {
                loads.fetch_add(1, Ordering::Relaxed);
                Ok(Entry::Pixels(vec![page as u8; 1000]))
            })
            .unwrap()
    };
    for page in 0..100 {
        get(page);
        get(0);
        assert!(cache.bytes() <= 10 * 1064);
    }
    assert_eq!(loads.load(Ordering::Relaxed), 100, "page 0 was in use and must have stayed");
    let huge = |_| Ok(Entry::Pixels(vec![0; 1 << 20]));
    cache.get(key(1000), huge).unwrap();
    cache.get(key(1000), |_| panic!("the latest entry is kept, however large")).unwrap();
    get(5);
    assert!(cache.bytes() <= 10 * 1064 + (1 << 20) + 64);
}

#[test]
fn memory_of_what_went_is_used_again_unless_somebody_holds_it() {
    let cache = Cache::new(3 * 1064);
    let load = |page: u32| {
        cache.get(key(page), |mut buffer| {
            let before = (buffer.capacity() > 0).then_some(buffer.as_ptr());
            buffer.resize(1000, 0);
            buffer.fill(page as u8);
            assert!(before.is_none_or(|before| before == buffer.as_ptr()));
            Ok(Entry::Pixels(buffer))
        })
    };
    let held = load(200).unwrap();
    let mut seen = std::collections::HashSet::new();
    for page in 0..100 {
        let entry = load(page).unwrap();
        let Entry::Pixels(pixels) = &*entry else { panic!() };
        assert!(pixels.iter().all(|&p| p == page as u8));
        seen.insert(pixels.as_ptr());
        assert!(cache.bytes() <= 3 * 1064);
    }
    // Those kept, the one held, and those decoded before any went.
    assert!(seen.len() <= 5, "{} buffers", seen.len());
    assert!(matches!(&*held, Entry::Pixels(pixels) if pixels.iter().all(|&p| p == 200)));
}

#[test]
fn threads_load_once_and_failures_are_not_kept() {
    let cache = Cache::new(1 << 20);
    let loads = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                cache.get(key(7), |_| {
                    loads.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    Ok(Entry::Pixels(vec![1]))
                })
            });
        }
    });
    assert_eq!(loads.load(Ordering::Relaxed), 1);
    assert!(matches!(cache.get(key(8), |_| Err(FastPathError::General)), Err(FastPathError::General)));
    assert!(cache.get(key(8), |_| Ok(Entry::Pixels(vec![2]))).is_ok());
}
