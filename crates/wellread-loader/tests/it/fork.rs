//! Forked processes: loaders work there, iterators of the parent say that they do not, and nothing hangs.

use crate::support::{images, is_alone, parquet, written};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use wellread_image::{Channel, ImageMetadata, PixelType, Shape};
use wellread_loader::{Cache, Dataset, Loader, MemoryStore};
use wellread_store::{
    Error, PixelSink, Request, Result, Scratch, Store, WriteOptions, default_answers, delegate_store,
};

/// Runs before `main`, and makes this process one as a Python interpreter is.
///
/// Where `main` is Rust's, its runtime reports stack overflows and takes a lock for that in every thread that starts or
/// ends. A fork at that moment leaves it closed, and no thread can be started in the child. It does not where a handler
/// is there before it, nor in programs of other languages.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn end(_: libc::c_int) {
        // SAFETY: may be called in a signal handler.
        unsafe { libc::abort() }
    }
    extern "C" fn before_main() {
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            // SAFETY: `end` does nothing that a signal handler must not do.
            unsafe { libc::signal(signal, end as extern "C" fn(libc::c_int) as libc::sighandler_t) };
        }
    }
    before_main
};

/// Runs `work` in a forked process and tells whether it returned `true`; one that hangs is ended.
pub(crate) fn in_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `work` and ends without running anything of the test's own. That allocating and starting
    // threads works there is what glibc and Darwin promise beyond POSIX, and Python relies on.
    match unsafe { libc::fork() } {
        -1 => panic!("cannot fork: {}", std::io::Error::last_os_error()),
        0 => {
            let code = catch_unwind(AssertUnwindSafe(work)).map_or(2, |good| i32::from(!good));
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(code) }
        }
        child => {
            let began = Instant::now();
            let mut status = 0;
            // SAFETY: `child` is a child of this process, waited for once.
            while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
                if began.elapsed() > Duration::from_mins(5) {
                    // SAFETY: as above.
                    unsafe {
                        libc::kill(child, libc::SIGKILL);
                        libc::waitpid(child, &raw mut status, 0);
                    }
                    panic!("the child hangs");
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
        }
    }
}

/// All images of an epoch, by a sum over their pixels.
fn sums(loader: &Loader, epoch: u64) -> Option<Vec<(usize, f64)>> {
    let mut all = vec![];
    for batch in loader.iter_at(epoch, 0) {
        let batch = batch.ok()?;
        for (i, &row) in batch.rows().iter().enumerate() {
            all.push((row, batch.image(i).iter().map(|&v| f64::from(v)).sum()));
        }
    }
    Some(all)
}

/// The same images in memory and in each format, and in a file behind a cache.
fn datasets(folder: &std::path::Path) -> Vec<Dataset> {
    let store = images(200, Shape::plane(40, 40), PixelType::U16);
    let formats = ["parquet", "ome-arrow-dataset", "tiff", "ome-zarr", "image-folder"];
    let write = |format: &&str| written(&folder.join(format), format, &store, &WriteOptions::default());
    let mut all: Vec<_> = formats.iter().map(write).collect();
    for (dataset, format) in all.iter().zip(formats) {
        assert_eq!((dataset.store().format(), dataset.len()), (format, 200));
    }
    all.push(all[0].clone().with_cache(&Cache::MEMORY).unwrap());
    all.push(Dataset::from_store(Box::new(store)));
    all
}

#[test]
fn a_loader_works_in_a_forked_process() {
    let folder = tempfile::tempdir().unwrap();
    for dataset in datasets(folder.path()) {
        for workers in [0, 2] {
            let loader = Loader::builder(&dataset).batch_size(8).shuffle(1).workers(workers).build().unwrap();
            assert!(in_child(|| loader.iter().next().unwrap().unwrap().len() == 8), "before any iteration");
            let expected = [sums(&loader, 0), sums(&loader, 1)];
            assert!(expected.iter().all(Option::is_some));
            let works = || [sums(&loader, 0), sums(&loader, 1)] == expected;
            assert!(in_child(works), "{dataset:?}, {workers} workers, after an iteration");
            assert!(
                in_child(|| works() && in_child(works)),
                "{dataset:?}, {workers} workers, a child's child"
            );
        }
    }
}

/// Threads of the parent are reading, and hold locks, while it forks.
#[test]
fn a_loader_works_in_a_process_forked_in_the_middle_of_reading() {
    let folder = tempfile::tempdir().unwrap();
    for dataset in datasets(folder.path()) {
        let loader = Loader::builder(&dataset).batch_size(4).shuffle(1).workers(3).build().unwrap();
        let expected = sums(&loader, 7).unwrap();
        let (end, epochs) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // A new opening each time: readers are at their first pages, under their locks. Once at least, should
                // this thread get its turn when all children have ended.
                loop {
                    let fresh = dataset.reopened().unwrap();
                    let loader = Loader::builder(&fresh).batch_size(4).shuffle(2).workers(2).build().unwrap();
                    assert!(loader.iter().chain(&loader).all(|batch| batch.is_ok()));
                    epochs.fetch_add(1, Ordering::Relaxed);
                    if end.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            for _ in 0..15 {
                let mut batches = loader.iter();
                let held = batches.next().unwrap().unwrap();
                let good = in_child(|| {
                    drop(held);
                    sums(&loader, 7).as_ref() == Some(&expected)
                });
                if !good {
                    end.store(true, Ordering::Relaxed);
                }
                assert!(good, "{dataset:?}");
            }
            end.store(true, Ordering::Relaxed);
        });
        assert!(epochs.load(Ordering::Relaxed) > 0);
    }
}

#[test]
fn an_iterator_does_not_cross_a_fork_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for dataset in datasets(folder.path()) {
        for workers in [0, 2] {
            let loader = Loader::builder(&dataset).batch_size(8).workers(workers).build().unwrap();
            let mut batches = loader.iter();
            batches.next().unwrap().unwrap();
            let state = batches.state();
            let good = in_child(move || {
                let error = batches.next().unwrap().unwrap_err().to_string();
                let told = error.contains("fork") && error.contains("begin an iteration");
                let ended = batches.next().is_none();
                drop(batches);
                // A state does cross.
                let rest: Vec<_> =
                    loader.resume(&state).unwrap().map(|batch| batch.unwrap().index()).collect();
                told && ended && rest == (1..25).collect::<Vec<_>>()
            });
            assert!(good, "{dataset:?}, {workers} workers");
        }
    }
}

#[test]
fn a_set_that_is_gone_is_an_error_in_the_child() {
    let folder = tempfile::tempdir().unwrap();
    let store = images(8, Shape::plane(4, 4), PixelType::U8);
    let dataset = parquet(&folder.path().join("set.parquet"), &store, None);
    let loader = Loader::builder(&dataset).workers(1).build().unwrap();
    std::fs::remove_file(folder.path().join("set.parquet")).unwrap();
    assert!(in_child(|| {
        let mut batches = loader.iter();
        batches.next().unwrap().unwrap_err().to_string().contains("set.parquet") && batches.next().is_none()
    }));
    assert_eq!(loader.iter().next().unwrap().unwrap().len(), 8, "the parent still has it open");
}

/// Threads of loaders in this process.
fn loader_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("wellread-")).count()
}

/// Waits until the threads of loaders have ended by themselves, in a process that has no others.
fn await_threads() {
    let began = Instant::now();
    while loader_threads() > 0 {
        assert!(began.elapsed() < Duration::from_mins(10), "threads of loaders that nobody uses do not end");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Twelve loaders of the parent and their epochs, whose threads have ended by themselves, dropped in each of 21 children.
/// All of them ended by a segmentation fault, since the handles of those threads were detached there.
#[test]
fn loaders_of_the_parent_are_dropped_in_a_child() {
    if !is_alone("fork::loaders_of_the_parent_are_dropped_in_a_child") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for dataset in datasets(folder.path()) {
        for child in 0..3 {
            let loader = || Loader::builder(&dataset).batch_size(8).workers(2).build().unwrap();
            let loaders: Vec<_> = std::iter::repeat_with(loader).take(12).collect();
            // An iterator has the handles of its threads until it is dropped.
            let mut ended: Vec<_> = loaders.iter().map(Loader::iter).collect();
            assert!(ended.iter_mut().flatten().all(|batch| batch.is_ok()));
            await_threads();
            // Others begin, and take the memory of those that have ended.
            let mut begun: Vec<_> = loaders[..6].iter().map(Loader::iter).collect();
            assert!(begun.iter_mut().all(|batches| batches.next().is_some_and(|batch| batch.is_ok())));
            let good = in_child(move || {
                drop((begun, ended, loaders));
                true
            });
            assert!(good, "{dataset:?}, child {child}");
        }
    }
}

/// The thread that preloads is still reading, or has ended, when the parent forks.
#[test]
fn a_preloaded_set_of_the_parent_is_dropped_in_a_child() {
    if !is_alone("fork::a_preloaded_set_of_the_parent_is_dropped_in_a_child") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for dataset in datasets(folder.path()) {
        for has_ended in [false, false, true] {
            let sets: Vec<_> = (0..12)
                .map(|_| dataset.clone().with_cache(&Cache::Preload { limit: 1 << 20 }).unwrap())
                .collect();
            if has_ended {
                await_threads();
            }
            let good = in_child(move || {
                drop(sets);
                true
            });
            assert!(good, "{dataset:?}, ended: {has_ended}");
        }
    }
}

/// A set that answers in the process that opened it alone, as one whose engine has threads or locks there.
struct OfOneProcess {
    inner: MemoryStore,
    process: u32,
}

impl OfOneProcess {
    /// Images whose channels take turns: that of a name has the value 7 everywhere, the other 0.
    fn opened() -> Self {
        let mut inner = MemoryStore::new("of one process");
        for row in 0..8 {
            let names = if row % 2 == 0 { ["DNA", "ER"] } else { ["ER", "DNA"] };
            let of = |name: &str| Channel { id: name.into(), name: name.into(), ..Channel::default() };
            let metadata =
                ImageMetadata { channels: names.map(of).into(), ..ImageMetadata::named(format!("{row}")) };
            let pixels: Vec<u8> = names.iter().flat_map(|name| [u8::from(*name == "DNA") * 7; 16]).collect();
            inner.push_with(metadata, Shape([1, 2, 1, 4, 4]), PixelType::U8, pixels).unwrap();
        }
        Self { inner, process: std::process::id() }
    }

    fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() { Ok(()) } else { Err(Error::new("set", "of another process")) }
    }
}

impl Store for OfOneProcess {
    delegate_store!(self => self.inner; format, path, remote_path, len, name, layout, files, files_of);
    delegate_store!(self => self.inner; has_checksums, hints, row_hints, row_info, heads, ranges, check);
    default_answers!(scan);

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        self.check_process()?;
        self.inner.metadata(row)
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        self.check_process()?;
        self.inner.read(requests, scratch, sink)
    }
}

/// Their names are read from the set that the child opened, and not from that of the parent.
#[test]
fn channels_go_by_name_in_a_forked_process() {
    let dataset = Dataset::from_fn(|| Ok(Box::new(OfOneProcess::opened()))).unwrap();
    for workers in [0, 2] {
        let builder = Loader::builder(&dataset).batch_size(4).named_channels([("DNA", 0)]).workers(workers);
        let loader = builder.build().unwrap();
        let expected: Vec<(usize, f64)> = (0..8).map(|row| (row, 7.0 * 16.0)).collect();
        assert!(in_child(|| sums(&loader, 0).as_ref() == Some(&expected)), "{workers} workers");
        assert_eq!(sums(&loader, 0).as_ref(), Some(&expected));
    }
}
