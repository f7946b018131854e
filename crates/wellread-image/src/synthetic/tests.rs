//! The same pictures on every platform and run, masks that are true, and noise that is noise.

use super::*;
use sha2::{Digest, Sha256};

fn spec(kind: Kind, shape: [usize; 5], dtype: PixelType) -> Spec {
    Spec { kind, shape: Shape(shape), dtype, seed: 7 }
}

fn u16s(bytes: &[u8]) -> Vec<u16> {
    bytes.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b)).collect()
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut n) = (0.0, 0);
    for value in values {
        sum += value;
        n += 1;
    }
    sum / f64::from(n.max(1))
}

fn variance(values: &[f64]) -> f64 {
    let mean_value = mean(values.iter().copied());
    mean(values.iter().map(|v| (v - mean_value) * (v - mean_value)))
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

/// If this fails on some platform only, a platform-dependent operation has crept in. If it fails everywhere,
/// the pictures have changed: say so in the changelog, since published results name images by seed and row.
#[test]
fn pictures_are_the_same_for_ever() {
    let cells = image(&spec(Kind::Cells, [2, 5, 2, 48, 40], PixelType::U16), 3).unwrap();
    let labels: Vec<u8> = cells.mask.unwrap().iter().flat_map(|l| l.to_le_bytes()).collect();
    let noise = image(&spec(Kind::Noise, [1, 1, 1, 48, 40], PixelType::F32), 3).unwrap();
    let found = [&cells.pixels, &labels, &noise.pixels].map(|bytes| sha256(bytes));
    assert_eq!(
        found,
        [
            "ce6c879cb04adfcba5426903e855a9e2e895e250a312b69e6296b553cbf03bca",
            "65e3caf329f48cd4f45af6626a01bf6dc98076066cc26bf37741b71d6ae32381",
            "1d7af379e99bd3531c8257b873b870a84fb94abd2e75cf02c1ae2315e4a00486",
        ]
    );
}

#[test]
fn rows_and_seeds_differ_and_threads_do_not_matter() {
    for kind in [Kind::Cells, Kind::Noise] {
        let spec = spec(kind, [1, 2, 1, 40, 40], PixelType::U8);
        let rows: Vec<_> = (0..4).map(|row| image(&spec, row).unwrap()).collect();
        let threads: Vec<_> =
            (0..4).rev().map(|row| std::thread::spawn(move || image(&spec, row).unwrap())).collect();
        for (row, thread) in threads.into_iter().rev().enumerate() {
            assert_eq!(thread.join().unwrap(), rows[row]);
        }
        assert_ne!(rows[0].pixels, rows[1].pixels);
        assert_ne!(rows[0].pixels, image(&Spec { seed: 8, ..spec }, 0).unwrap().pixels);
        assert_eq!(rows[2].metadata.name, format!("{}-000002", kind.name()));
    }
}

#[test]
fn masks_are_where_the_dna_is() {
    for row in 0..6 {
        let found = image(&spec(Kind::Cells, [1, 2, 1, 200, 180], PixelType::U16), row).unwrap();
        let (mask, cells) = (found.mask.unwrap(), found.cell_mask.unwrap());
        let (dna, er) = found.pixels.split_at(found.pixels.len() / 2);
        let contrast = |pixels: &[u8], labels: &[u16]| {
            let pixels = u16s(pixels);
            let side = |inside: bool| {
                let chosen = pixels.iter().zip(labels).filter(move |&(_, &l)| (l > 0) == inside);
                mean(chosen.map(|(&p, _)| f64::from(p)))
            };
            side(true) / side(false)
        };
        assert!(contrast(dna, &mask) > 5.0, "row {row}: {}", contrast(dna, &mask));
        assert!(contrast(er, &cells) > 3.0, "row {row}: {}", contrast(er, &cells));
        // Every nucleus lies in the cell of its label.
        assert!(mask.iter().zip(&cells).all(|(&nucleus, &cell)| nucleus == 0 || nucleus == cell));
        // Neither empty nor full.
        let share = mean(mask.iter().map(|&l| f64::from(u8::from(l > 0))));
        assert!((0.005..0.5).contains(&share), "row {row}: {share}");
    }
}

#[test]
fn a_compound_changes_the_same_cells() {
    let spec = spec(Kind::Cells, [1, 5, 1, 200, 180], PixelType::U16);
    let plain = image(&spec, 4).unwrap();
    assert_eq!(treated(&spec, 4, 0.0).unwrap(), plain);
    let changed = treated(&spec, 4, 1.0).unwrap();
    let labels = |image: &SyntheticImage| -> std::collections::BTreeSet<u16> {
        image.mask.iter().flatten().copied().collect()
    };
    let (before, after) = (labels(&plain), labels(&changed));
    assert!(before.intersection(&after).count() * 10 >= before.len() * 9, "{before:?} {after:?}");
    let plane = 200 * 180;
    let inside = |image: &SyntheticImage, c: usize| {
        let pixels = u16s(&image.pixels[2 * c * plane..2 * (c + 1) * plane]);
        let mask = image.mask.iter().flatten();
        mean(pixels.into_iter().zip(mask).filter(|&(_, &label)| label > 0).map(|(pixel, _)| f64::from(pixel)))
    };
    let ratio = |c| inside(&changed, c) / inside(&plain, c);
    assert!(ratio(0) > 1.3 && ratio(4) < 0.8, "DNA {}, mitochondria {}", ratio(0), ratio(4));
    let area = |image: &SyntheticImage| image.mask.iter().flatten().filter(|&&label| label > 0).count();
    assert!(area(&changed) < area(&plain), "nuclei shrink");
}

#[test]
fn nuclei_are_as_large_as_in_real_images() {
    let found = image(&spec(Kind::Cells, [1, 1, 1, 512, 512], PixelType::U16), 0).unwrap();
    let mask = found.mask.unwrap();
    let mut areas = std::collections::BTreeMap::new();
    for &label in mask.iter().filter(|&&l| l > 0) {
        *areas.entry(label).or_insert(0usize) += 1;
    }
    assert!((30..150).contains(&areas.len()), "{} nuclei", areas.len());
    let mut areas: Vec<usize> = areas.into_values().collect();
    areas.sort_unstable();
    let diameter = (areas[areas.len() / 2] as f64 * 4.0 / std::f64::consts::PI).sqrt();
    assert!((20.0..32.0).contains(&diameter), "median diameter {diameter}");
}

#[test]
fn histograms_are_those_of_a_microscope() {
    let found = image(&spec(Kind::Cells, [1, 1, 1, 400, 400], PixelType::U16), 1).unwrap();
    let mut counts = u16s(&found.pixels);
    counts.sort_unstable();
    let percentile = |p: usize| counts[counts.len() * p / 100];
    // Most of the picture is dark, a tenth is nuclei, a tail is bright.
    assert!((200..1500).contains(&percentile(50)), "median {}", percentile(50));
    assert!(percentile(99) > 6000, "99th percentile {}", percentile(99));
    assert!(percentile(1) > 150, "1st percentile {}", percentile(1));
}

#[test]
fn all_types_show_the_same_picture() {
    let shape = [1, 2, 1, 33, 47];
    let reference = u16s(&image(&spec(Kind::Cells, shape, PixelType::U16), 5).unwrap().pixels);
    for dtype in PixelType::ALL {
        let pixels = image(&spec(Kind::Cells, shape, dtype), 5).unwrap().pixels;
        assert_eq!(pixels.len(), reference.len() * dtype.size());
        let (_, high) = dtype.range();
        for (pixel, &count) in pixels.chunks(dtype.size()).zip(&reference) {
            let value = match dtype {
                PixelType::U8 => f64::from(pixel[0]),
                PixelType::I8 => f64::from(pixel[0] as i8),
                PixelType::U16 => f64::from(u16::from_le_bytes(pixel.try_into().unwrap())),
                PixelType::I16 => f64::from(i16::from_le_bytes(pixel.try_into().unwrap())),
                PixelType::U32 => f64::from(u32::from_le_bytes(pixel.try_into().unwrap())),
                PixelType::I32 => f64::from(i32::from_le_bytes(pixel.try_into().unwrap())),
                PixelType::F32 => f64::from(f32::from_le_bytes(pixel.try_into().unwrap())),
                PixelType::F64 => f64::from_le_bytes(pixel.try_into().unwrap()),
            };
            // 8-bit images are exposed four times longer and saturate.
            let expected = match dtype.size() {
                1 => f64::from(count.min(16_383)) / 16_383.0,
                _ => f64::from(count) / 65535.0,
            };
            assert!((value / high - expected).abs() < 0.011, "{dtype}: {value} for {count}");
        }
    }
}

#[test]
fn any_size_has_something_to_see() {
    for [y, x] in [[1, 1], [1, 50], [3, 2], [7, 200]] {
        let found = image(&spec(Kind::Cells, [1, 1, 1, y, x], PixelType::U16), 0).unwrap();
        assert_eq!((found.pixels.len(), found.mask.unwrap().len()), (2 * y * x, y * x));
    }
    for size in [16, 24, 32, 64, 100] {
        for row in 0..20 {
            let found = image(&spec(Kind::Cells, [1, 1, 1, size, size], PixelType::U8), row).unwrap();
            let nuclear = found.mask.unwrap().iter().filter(|&&l| l > 0).count();
            assert!(nuclear * 80 > size * size, "size {size}, row {row}: {nuclear} pixels");
        }
    }
    let empty = spec(Kind::Cells, [1, 1, 1, 0, 5], PixelType::U8);
    assert!(image(&empty, 0).is_err());
    let huge = spec(Kind::Noise, [1, 1, 1, usize::MAX, 5], PixelType::U8);
    assert!(image(&huge, 0).is_err());
}

#[test]
fn stacks_are_sections_and_series_bleach() {
    let (depth, times, plane) = (7, 6, 90 * 90);
    let found = image(&spec(Kind::Cells, [times, 1, depth, 90, 90], PixelType::U16), 2).unwrap();
    let (pixels, mask) = (u16s(&found.pixels), found.mask.unwrap());
    let area =
        |t: usize, z: usize| mask[(t * depth + z) * plane..][..plane].iter().filter(|&&l| l > 0).count();
    assert!(area(0, depth / 2) > area(0, 0), "nuclei are largest in the middle");
    assert!(area(0, depth / 2) > area(0, depth - 1));
    assert_ne!(mask[..depth * plane], mask[(times - 1) * depth * plane..], "cells move");
    // The brightness of the nuclei themselves: how many are in view changes as they move.
    let brightness = |t: usize| {
        let from = (t * depth + depth / 2) * plane;
        let both = pixels[from..][..plane].iter().zip(&mask[from..][..plane]);
        mean(both.filter(|&(_, &l)| l > 0).map(|(&p, _)| f64::from(p)))
    };
    assert!(brightness(times - 1) < 0.97 * brightness(0), "{} {}", brightness(times - 1), brightness(0));
    assert!(found.metadata.physical_size_z.is_some());
}

#[test]
fn channels_are_described() {
    let found = image(&spec(Kind::Cells, [1, 7, 1, 16, 16], PixelType::U8), 0).unwrap();
    let names: Vec<&str> = found.metadata.channels.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["DNA", "ER", "RNA", "AGP", "Mito", "DNA 2", "ER 2"]);
    assert!(found.metadata.channels.iter().all(|c| c.emission_um > c.excitation_um));
    assert_eq!(found.metadata.physical_size_x.unwrap().value, 0.6);
    let plane = 16 * 16;
    assert_ne!(found.pixels[..plane], found.pixels[5 * plane..6 * plane], "a second round is no copy");
}

/// Mean and variance of uniform noise, for integers relative to their whole range.
#[test]
fn noise_is_uniform() {
    for dtype in PixelType::ALL {
        let found = image(&spec(Kind::Noise, [1, 2, 1, 128, 128], dtype), 0).unwrap();
        assert!(found.mask.is_none() && found.cell_mask.is_none());
        let values: Vec<f64> = found
            .pixels
            .chunks(dtype.size())
            .map(|pixel| match dtype {
                PixelType::F32 => f64::from(f32::from_le_bytes(pixel.try_into().unwrap())),
                PixelType::F64 => f64::from_le_bytes(pixel.try_into().unwrap()),
                _ => {
                    // The most significant byte, with the sign bit turned for signed types.
                    let signed = matches!(dtype, PixelType::I8 | PixelType::I16 | PixelType::I32);
                    let top = pixel[dtype.size() - 1] ^ if signed { 0x80 } else { 0 };
                    (f64::from(top) + 0.5) / 256.0
                }
            })
            .collect();
        assert!(values.iter().all(|v| (0.0..1.0).contains(v)), "{dtype}");
        assert!((mean(values.iter().copied()) - 0.5).abs() < 0.01, "{dtype}");
        assert!((variance(&values) - 1.0 / 12.0).abs() < 0.002, "{dtype}");
    }
}

#[test]
fn normal_variates_are_normal() {
    let mut random = Random::new(1, 2, 3);
    let values: Vec<f64> = (0..50_000).map(|_| f64::from(random.normal())).collect();
    assert!(mean(values.iter().copied()).abs() < 0.02);
    assert!((variance(&values) - 1.0).abs() < 0.03);
    let within = mean(values.iter().map(|v| f64::from(u8::from(v.abs() < 1.0))));
    assert!((within - 0.68).abs() < 0.02, "{within}");
}
