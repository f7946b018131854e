//! How fast random rows are read: a measurement, not a test, and so ignored.
//!
//! `WELLREAD_SPEED_FILE=FILE cargo test --release --test speed -- --ignored --nocapture`

use std::path::Path;
use std::time::{Duration, Instant};
use wellread_store::table::{ImageTable, Rows};
use wellread_store::{
    Compression, CopySink, FormatContext, ImageView, OpenOptions, Request, Scratch, Store, Tune, WriteOptions,
};

/// Rows of a call.
const ROWS: usize = 16;

/// Runs `call` in several threads for a second, and tells rows per second.
fn rate(threads: usize, call: impl Fn(u64) + Sync) -> f64 {
    let start = Instant::now();
    let run = |t: u64| {
        let mut n = 0;
        while start.elapsed() < Duration::from_secs(1) {
            call(t * 1_000_003 + n);
            n += 1;
        }
        n
    };
    let calls: u64 = std::thread::scope(|scope| {
        let run = &run;
        let handles: Vec<_> = (0..threads as u64).map(|t| scope.spawn(move || run(t))).collect();
        handles.into_iter().map(|h| h.join().unwrap()).sum()
    });
    (calls * ROWS as u64) as f64 / start.elapsed().as_secs_f64()
}

/// Distinct rows in ascending order.
fn rows(seed: u64, len: usize) -> Vec<usize> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut rows = std::collections::BTreeSet::new();
    while rows.len() < ROWS.min(len) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        rows.insert((state >> 33) as usize % len);
    }
    rows.into_iter().collect()
}

#[test]
#[ignore = "a measurement"]
fn random_rows() {
    let file = std::env::var_os("WELLREAD_SPEED_FILE").expect("WELLREAD_SPEED_FILE names a Vortex file");
    let file = Path::new(&file);
    let table = wellread_vortex::VortexTable::open(file).unwrap();
    let store = (wellread_vortex::FORMAT.open)(file, &OpenOptions::default()).unwrap();
    println!("{} rows, {:?}", store.len(), store.layout().unwrap());
    let path = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let all = ["t", "c", "z", "y", "x", "shape_z", "shape_y", "shape_x", "pixels"];
    let columns = [
        ("whole image", vec![path(&["ome_image"])]),
        ("chunks", vec![path(&["ome_image", "chunks"])]),
        ("chunks by field", all.iter().map(|n| path(&["ome_image", "chunks", n])).collect()),
        ("pixels", vec![path(&["ome_image", "chunks", "pixels"])]),
    ];
    for threads in [1, 2] {
        for (name, columns) in &columns {
            let rate = rate(threads, |seed| {
                let mut read = 0;
                let rows = rows(seed, table.len());
                table
                    .read(Rows::Chosen(&rows), columns, &mut FormatContext::default(), &mut |batch| {
                        read += batch.num_rows();
                        Ok(())
                    })
                    .unwrap();
                assert_eq!(read, rows.len());
            });
            println!("{threads} threads, {name}: {rate:.0} rows/s");
        }
        let rate = random_images(&*store, threads);
        println!("{threads} threads, native pixels through the store: {rate:.0} images/s");
    }
    let start = Instant::now();
    store.scan(0..store.len(), &mut |_, _, _| Ok(())).unwrap();
    println!("scan: {:.0} images/s", store.len() as f64 / start.elapsed().as_secs_f64());
}

/// Whole images per second as native pixels.
fn random_images(store: &dyn Store, threads: usize) -> f64 {
    rate(threads, |seed| {
        let rows = rows(seed, store.len());
        let infos: Vec<_> = rows.iter().map(|&r| store.row_info(r).unwrap()).collect();
        let requests: Vec<_> =
            rows.iter().zip(&infos).map(|(&row, i)| Request { row, region: i.shape.full() }).collect();
        let mut out: Vec<Vec<u8>> =
            infos.iter().map(|i| vec![0; i.shape.pixels() * i.dtype.size()]).collect();
        let targets = out.iter_mut().zip(requests.iter().zip(&infos));
        let targets = targets.map(|(o, (r, i))| (r.region, i.dtype, o.as_mut_slice())).collect();
        store.read(&requests, &mut Scratch::default(), &mut CopySink::new(targets)).unwrap();
    })
}

/// Writes the file again in every layout, to the folder that `WELLREAD_SPEED_OUT` names.
#[test]
#[ignore = "a measurement"]
fn layouts() {
    let file = std::env::var_os("WELLREAD_SPEED_FILE").expect("WELLREAD_SPEED_FILE names a set of images");
    let out = std::env::var_os("WELLREAD_SPEED_OUT").expect("WELLREAD_SPEED_OUT names a folder");
    let from = wellread_store::open(Path::new(&file), &OpenOptions::default()).unwrap();
    for tune in [Tune::Random, Tune::Scan, Tune::Size, Tune::Reference] {
        for compression in [Compression::Default, Compression::None, Compression::Zstd(3)] {
            let name = format!("{tune:?}-{compression}.vortex").replace(':', "-");
            let path = Path::new(&out).join(name);
            let options =
                WriteOptions { tune, compression, jobs: 2, overwrite: true, ..WriteOptions::default() };
            let start = Instant::now();
            let mut writer = (wellread_vortex::FORMAT.create)(&path, &options).unwrap();
            from.scan(0..from.len(), &mut |row, info, pixels| {
                let metadata = from.metadata(row)?;
                writer.write(&ImageView { metadata: &metadata, shape: info.shape, dtype: info.dtype, pixels })
            })
            .unwrap();
            writer.finish().unwrap();
            let written = start.elapsed().as_secs_f64();
            let store = (wellread_vortex::FORMAT.open)(&path, &OpenOptions::default()).unwrap();
            let random = random_images(&*store, 2);
            let start = Instant::now();
            store.scan(0..store.len(), &mut |_, _, _| Ok(())).unwrap();
            println!(
                "{}: {} bytes, {:?}, written in {written:.2} s, random {random:.0} images/s, scan {:.0} images/s",
                path.file_name().unwrap().display(),
                store.bytes_on_disk().unwrap(),
                store.layout().unwrap(),
                store.len() as f64 / start.elapsed().as_secs_f64()
            );
        }
    }
}
