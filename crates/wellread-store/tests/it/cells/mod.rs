//! Cells cut out of images: every format and edge against slices of whole images, pieces decoded once, masks, bad
//! tables.

mod crops;
mod labels;
mod numbers;
mod tables;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use wellread_image::{ImageMetadata, PixelType, Region, Shape};
use wellread_store::cells::Edge;
use wellread_store::{
    CopySink, ImageView, OpenOptions, Request, Result, Scratch, Store, WriteOptions, create, open,
};

/// A whole number below `n`.
fn below(random: &mut ChaCha8Rng, n: usize) -> usize {
    (random.next_u64() % n as u64) as usize
}

/// An image to be written.
struct Image {
    metadata: ImageMetadata,
    shape: Shape,
    dtype: PixelType,
    pixels: Vec<u8>,
}

impl Image {
    fn noise(name: &str, shape: Shape, dtype: PixelType, random: &mut ChaCha8Rng) -> Self {
        let mut pixels = vec![0; shape.pixels() * dtype.size()];
        random.fill_bytes(&mut pixels);
        Self { metadata: ImageMetadata::named(name), shape, dtype, pixels }
    }

    fn labels(name: &str, shape: Shape, label: impl Fn(usize, usize) -> u16) -> Self {
        let at = |i: usize| label(i / shape.x() % shape.y(), i % shape.x());
        let pixels = (0..shape.pixels()).flat_map(|i| at(i).to_le_bytes()).collect();
        Self { metadata: ImageMetadata::named(name), shape, dtype: PixelType::U16, pixels }
    }
}

fn write(path: &Path, format: &str, options: &WriteOptions, images: &[Image]) -> Box<dyn Store> {
    let mut writer = create(path, format, options).unwrap();
    for Image { metadata, shape, dtype, pixels } in images {
        writer.write(&ImageView { metadata, shape: *shape, dtype: *dtype, pixels }).unwrap();
    }
    writer.finish().unwrap();
    open(path, &OpenOptions { format: Some(format.to_owned()), ..OpenOptions::default() }).unwrap()
}

/// A table of names, x and y.
fn table(folder: &Path, cells: &[(String, f64, f64)]) -> PathBuf {
    let mut text = "ImageName,Location_Center_X,Location_Center_Y\n".to_owned();
    for (name, x, y) in cells {
        writeln!(text, "{name},{x},{y}").unwrap();
    }
    let path = folder.join("cells.csv");
    std::fs::write(&path, text).unwrap();
    path
}

/// The box of a cell by slicing the whole image, zeros where it is outside.
fn sliced(image: &Image, start: [i64; 2], size: [usize; 2], region: &Region) -> Vec<u8> {
    let (bytes, [_, c, z, height, width]) = (image.dtype.size(), image.shape.0);
    let mut out = Vec::with_capacity(region.pixels() * bytes);
    let [t0, c0, z0, y0, x0] = region.start;
    let [nt, nc, nz, ny, nx] = region.size;
    assert!(y0 + ny <= size[0] && x0 + nx <= size[1]);
    for (ti, ci, zi) in
        (t0..t0 + nt).flat_map(|t| (c0..c0 + nc).flat_map(move |c| (z0..z0 + nz).map(move |z| (t, c, z))))
    {
        for yi in y0..y0 + ny {
            for xi in x0..x0 + nx {
                let [y, x] = [start[0] + yi as i64, start[1] + xi as i64];
                if y < 0 || x < 0 || y >= height as i64 || x >= width as i64 {
                    out.extend(std::iter::repeat_n(0, bytes));
                    continue;
                }
                let at = (((ti * c + ci) * z + zi) * height + y as usize) * width + x as usize;
                out.extend_from_slice(&image.pixels[at * bytes..(at + 1) * bytes]);
            }
        }
    }
    out
}

/// The first row, or column, of a box, as it is documented, and whether it lies inside.
fn documented(at: f64, size: usize, whole: usize, edge: Edge) -> (i64, bool) {
    let start = (at + 0.5).floor() as i64 - size as i64 / 2;
    let last = whole as i64 - size as i64;
    let moved = if edge == Edge::Shift { start.clamp(0, last) } else { start };
    (moved, (0..=last).contains(&start))
}

/// Reads boxes of cells in one call.
fn read(store: &dyn Store, requests: &[Request], scratch: &mut Scratch) -> Result<Vec<Vec<u8>>> {
    let mut out = vec![];
    for request in requests {
        let info = store.check(request)?;
        out.push((request.region, info.dtype, vec![0xa5; request.region.pixels() * info.dtype.size()]));
    }
    let targets =
        out.iter_mut().map(|(region, dtype, data)| (*region, *dtype, data.as_mut_slice())).collect();
    store.read(requests, scratch, &mut CopySink::new(targets))?;
    Ok(out.into_iter().map(|(.., data)| data).collect())
}

/// A part of a row.
fn part(random: &mut ChaCha8Rng, shape: Shape) -> Region {
    let mut region = shape.full();
    if below(random, 3) > 0 {
        for axis in 0..5 {
            region.start[axis] = below(random, shape.0[axis]);
            region.size[axis] = 1 + below(random, shape.0[axis] - region.start[axis]);
        }
    }
    region
}
