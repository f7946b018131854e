//! How fast bytes become the numbers of batches: kernels in every turn, single items and whole epochs from RAM, beside a memory copy.
//!
//! ```text
//! cargo run --release -p wellread-loader --example kernel_speed [turns]
//! ```
//!
//! Contenders are interleaved, so that a busy machine disturbs all alike, and each line is a median over
//! rounds. `of copy` is the median ratio of the copy's time to the contender's in the same round, where the
//! copy moves as many floats as the contender writes. GB/s count the bytes of floats written.

use std::hint::black_box;
use std::time::Instant;
use wellread_image::{PixelType, Shape};
use wellread_loader::kernels::{Affine, Turn, convert_at, convert_plane};
use wellread_loader::simd::Level;
use wellread_loader::{
    Dataset, ItemContext, Jitter, Loader, MemoryStore, Noise, Normalize, Output, Transform,
};

const ROUNDS: usize = 31;

/// A way of making floats: what it is called, and the code that is timed.
type Contender<'a> = (String, Box<dyn FnMut() + 'a>);

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Times the contenders in turn; the first is the copy. Each makes `floats` floats, `images` images.
fn compare(title: &str, floats: usize, images: usize, contenders: &mut [Contender<'_>]) {
    println!("\n{title}");
    let mut times = vec![vec![]; contenders.len()];
    // About a millisecond each: shorter than what a busy machine takes away at a time.
    let repeats: Vec<usize> = contenders
        .iter_mut()
        .map(|(_, run)| {
            let start = Instant::now();
            run();
            (0.001 / start.elapsed().as_secs_f64()).clamp(1.0, 1000.0) as usize
        })
        .collect();
    for _ in 0..ROUNDS {
        for (((_, run), times), &repeats) in contenders.iter_mut().zip(&mut times).zip(&repeats) {
            let start = Instant::now();
            (0..repeats).for_each(|_| run());
            times.push(start.elapsed().as_secs_f64() / repeats as f64);
        }
    }
    for ((name, _), own) in contenders.iter().zip(&times) {
        let seconds = median(own.clone());
        println!(
            "  {name:<28} {:>10.2} us {:>8.2} GB/s {:>10.0} images/s {:>6.2} of copy",
            seconds * 1e6,
            floats as f64 * 4e-9 / seconds,
            images as f64 / seconds,
            median(times[0].iter().zip(own).map(|(copy, own)| copy / own).collect())
        );
    }
}

fn copy<'a>(from: &'a [f32], to: &'a mut [f32]) -> Contender<'a> {
    ("copy of as many floats".into(), Box::new(move || black_box(&mut *to).copy_from_slice(black_box(from))))
}

/// What one writes without a thought.
fn plain_loop(dtype: PixelType, data: &[u8], k: f32, out: &mut [f32]) {
    #[allow(clippy::needless_range_loop)]
    for i in 0..out.len() {
        out[i] = match dtype {
            PixelType::U8 => data[i] as f32 * k,
            _ => u16::from_le_bytes([data[2 * i], data[2 * i + 1]]) as f32 * k,
        };
    }
}

fn kernels(dtype: PixelType, bytes: usize) {
    let floats = bytes / dtype.size();
    let data: Vec<u8> = (0..bytes).map(|i| (i * 7) as u8).collect();
    let affine = Affine { scale: 1.0 / 255.0, ..Affine::IDENTITY };
    let from = vec![1f32; floats];
    let mut outs = vec![vec![0f32; floats]; 2 + Level::available().len()];
    let mut outs = outs.iter_mut();
    let mut contenders = vec![copy(&from, outs.next().expect("one for each"))];
    let out = outs.next().expect("one for each");
    let bytes_in = &data;
    contenders.push((
        "plain loop".into(),
        Box::new(move || plain_loop(dtype, black_box(bytes_in), affine.scale, black_box(out))),
    ));
    for (level, out) in Level::available().into_iter().zip(outs) {
        contenders.push((
            format!("kernel, {level:?}"),
            Box::new(move || convert_at(level, dtype, black_box(bytes_in), affine, black_box(out))),
        ));
    }
    compare(&format!("{dtype} to float32, {bytes} bytes"), floats, 1, &mut contenders);
}

/// One line per pixel type, output and turn: GB/s read and written, and the share of a copy that moves as many bytes.
fn turns(side: usize) {
    println!("\nplanes of {side} x {side}: GB/s read and written, and the share of what a copy moves");
    let pixels = side * side;
    let straight = Turn::default();
    let turns = [
        ("straight", straight),
        ("flipped", Turn { flip_horizontal: true, ..straight }),
        ("transposed", Turn { quarter_turns: 1, ..straight }),
    ];
    // One image after the other, as in an epoch: 64 small ones fit the second-level cache, a large one does not.
    let images = (640_000 / pixels).max(1);
    for dtype in [PixelType::U8, PixelType::U16, PixelType::F32] {
        for output in [Output::Stored, Output::F16, Output::BF16, Output::F32] {
            if output == Output::Stored && dtype == PixelType::F32 {
                continue;
            }
            let size = output.dtype(dtype).size();
            let traffic = pixels * (dtype.size() + size);
            let data: Vec<u8> = (0..pixels * dtype.size() * images).map(|i| (i * 7 % 64) as u8).collect();
            let mut out = vec![0u64; (pixels * size * images).div_ceil(8)];
            let out: &mut [u8] = bytemuck::cast_slice_mut(&mut out);
            let (from, mut to) = (vec![1u8; traffic / 2 * images], vec![0u8; traffic / 2 * images]);
            let mut times = vec![vec![]; 1 + turns.len()];
            let repeats = 1;
            for _ in 0..ROUNDS {
                let start = Instant::now();
                for _ in 0..repeats {
                    for (from, to) in from.chunks(traffic / 2).zip(to.chunks_mut(traffic / 2)) {
                        black_box(to).copy_from_slice(black_box(from));
                    }
                }
                times[0].push(start.elapsed().as_secs_f64());
                for ((_, turn), times) in turns.iter().zip(&mut times[1..]) {
                    let start = Instant::now();
                    for _ in 0..repeats {
                        let planes = data.chunks_exact(pixels * dtype.size());
                        for (data, out) in planes.zip(out.chunks_exact_mut(pixels * size)) {
                            let affine = Affine { scale: 1.0 / 255.0, ..Affine::IDENTITY };
                            let level = Level::detect();
                            convert_plane(
                                level,
                                dtype,
                                black_box(data),
                                [side; 2],
                                *turn,
                                affine,
                                output,
                                out,
                            );
                        }
                    }
                    times.push(start.elapsed().as_secs_f64());
                }
            }
            let bytes = (traffic * images * repeats) as f64;
            let name = output.dtype(dtype).name();
            print!(
                "  {:<8} to {name:<9} copy {:>6.1}",
                dtype.name(),
                bytes * 1e-9 / median(times[0].clone())
            );
            for ((turn, _), own) in turns.iter().zip(&times[1..]) {
                let share = median(times[0].iter().zip(own).map(|(copy, own)| copy / own).collect());
                print!("   {turn} {:>6.1} {share:>5.2}", bytes * 1e-9 / median(own.clone()));
            }
            println!();
        }
    }
}

fn images(n: usize, shape: Shape, dtype: PixelType) -> Dataset {
    let mut store = MemoryStore::new("images in memory");
    for i in 0..n {
        let pixels = (0..shape.pixels() * dtype.size()).map(|j| (i + j * 7) as u8).collect();
        store.push(i.to_string(), shape, dtype, pixels).expect("bytes fit the shape");
    }
    Dataset::from_store(Box::new(store))
}

fn items(shape: Shape, dtype: PixelType) {
    let dataset = images(4, shape, dtype);
    let (from, mut to) = (vec![1f32; shape.pixels()], vec![0f32; shape.pixels()]);
    let unit = || Transform::default().scale_to_unit();
    let transforms = [
        ("none", unit()),
        ("flip horizontally", unit().flip(1.0, 0.0)),
        ("right angles", unit().right_angles(wellread_loader::RightAngles::Fitting)),
        ("augment", Transform::preset("augment").expect("a preset")),
        ("resize to 224 x 224", unit().resize(224, 224)),
        ("random resized crop to 224", unit().random_resized_crop(224, 224)),
        ("normalised per image", unit().normalize_with(Normalize::PerImage)),
        ("percentiles per image", Transform::default().scale_by_percentiles(1.0, 99.0)),
        ("brightness", unit().jitter(Jitter { brightness: 0.2, ..Jitter::default() })),
        ("contrast", unit().jitter(Jitter { contrast: 0.2, ..Jitter::default() })),
        ("gamma", unit().jitter(Jitter { gamma: 0.3, ..Jitter::default() })),
        ("Gaussian noise", unit().noise(Noise { gaussian: 0.02, photon: 0.0 })),
        ("photon and Gaussian noise", unit().noise(Noise { gaussian: 0.02, photon: 0.01 })),
    ];
    let mut contenders = vec![copy(&from, &mut to)];
    for (name, transform) in transforms {
        let (mut out, mut context, mut row) = (vec![], ItemContext::new(), 0);
        let dataset = &dataset;
        contenders.push((
            format!("item, {name}"),
            Box::new(move || {
                row = (row + 1) % 4;
                context.set_seed(1, row as u64);
                dataset.sample_into(row, &transform, black_box(&mut out), &mut context).expect("reads");
            }),
        ));
    }
    compare(&format!("items of {dtype} {shape} from RAM"), shape.pixels(), 1, &mut contenders);
}

fn epochs(n: usize, shape: Shape, dtype: PixelType, batch_size: usize, transform: &str) {
    let dataset = images(n, shape, dtype);
    let (from, mut to) = (vec![1f32; n * shape.pixels()], vec![0f32; n * shape.pixels()]);
    let mut contenders = vec![copy(&from, &mut to)];
    for workers in [0, 1, 2] {
        let loader = Loader::builder(&dataset)
            .batch_size(batch_size)
            .shuffle(1)
            .workers(workers)
            .transform(Transform::preset(transform).expect("a preset"))
            .build()
            .expect("fits");
        contenders.push((
            format!("epoch, {workers} workers"),
            Box::new(move || loader.iter().for_each(|batch| drop(black_box(batch.expect("reads"))))),
        ));
    }
    let title = format!("epochs of {n} x {dtype} {shape} from RAM, batches of {batch_size}, {transform}");
    compare(&title, n * shape.pixels(), n, &mut contenders);
}

fn first_batch(workers: usize) {
    let dataset = images(64, Shape::plane(100, 100), PixelType::U8);
    let loader = Loader::builder(&dataset).batch_size(16).workers(workers).build().expect("fits");
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        let mut iter = loader.iter();
        black_box(iter.next());
        start.elapsed().as_secs_f64()
    });
    println!("  first batch, {workers} workers: {:.0} us", median(times.collect()) * 1e6);
}

fn main() {
    println!("widest level: {:?}", Level::detect());
    [100, 1080].into_iter().for_each(turns);
    if std::env::args().any(|arg| arg == "turns") {
        return;
    }
    for bytes in [10_000, 4_000_000] {
        kernels(PixelType::U8, bytes);
        kernels(PixelType::U16, bytes);
    }
    items(Shape::plane(100, 100), PixelType::U8);
    items(Shape::plane(1080, 1080), PixelType::U16);
    for transform in Transform::PRESETS {
        epochs(1000, Shape::plane(100, 100), PixelType::U8, 16, transform);
    }
    epochs(32, Shape::plane(1080, 1080), PixelType::U16, 4, "none");
    println!("\nfrom iter() to the first batch of 16 small images");
    (0..3).for_each(first_batch);
}
