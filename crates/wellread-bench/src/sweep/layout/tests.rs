//! The parts that a layout touches, and its findings.

use super::*;
use wellread_image::{ImageMetadata, PixelType};
use wellread_report::row;
use wellread_store::RowInfo;

#[test]
fn chunks_are_cut_to_the_image() {
    let shape = Shape([2, 3, 20, 300, 100]);
    assert_eq!(chunk(ChunkLayout::ZPlane, shape).0, [1, 1, 1, 300, 100]);
    assert_eq!(chunk(ChunkLayout::Block, shape).0, [1, 1, 16, 128, 100]);
    assert_eq!(chunk(ChunkLayout::Volume, shape).0, [1, 1, 20, 300, 100]);
}

#[test]
fn touched_pixels_are_those_of_the_chunks_that_share_one() {
    let shape = Shape([2, 1, 5, 7, 9]);
    let mut rng = Rng::seed(3);
    for _ in 0..200 {
        let chunk = Shape(std::array::from_fn(|a| 1 + rng.below(shape.0[a])));
        let size = std::array::from_fn(|a| 1 + rng.below(shape.0[a]));
        let region = Region { start: std::array::from_fn(|a| rng.below(shape.0[a] - size[a] + 1)), size };
        // Counted chunk by chunk.
        let mut expected = 0;
        let counts: [usize; 5] = std::array::from_fn(|a| shape.0[a].div_ceil(chunk.0[a]));
        for i in 0..counts.iter().product() {
            let mut rest = i;
            let start: [usize; 5] = std::array::from_fn(|a| {
                let at = rest % counts[a];
                rest /= counts[a];
                at * chunk.0[a]
            });
            let piece =
                Region { start, size: std::array::from_fn(|a| chunk.0[a].min(shape.0[a] - start[a])) };
            expected += if piece.intersects(&region) { piece.pixels() } else { 0 };
        }
        assert_eq!(touched(&region, chunk, shape), expected, "{region:?} {chunk}");
    }
    let plane = Region { start: [0, 0, 2, 0, 0], size: [1, 1, 1, 7, 9] };
    assert_eq!(touched(&plane, Shape([1, 1, 5, 7, 9]), shape), 5 * plane.pixels());
    assert_eq!(touched(&plane, Shape([1, 1, 1, 7, 9]), shape), plane.pixels());
}

fn image(shape: Shape) -> InMemory {
    InMemory {
        metadata: ImageMetadata::named("x"),
        info: RowInfo { shape, dtype: PixelType::U8 },
        pixels: (0..shape.pixels()).map(|i| (i % 251) as u8).collect(),
    }
}

#[test]
fn a_set_whose_first_images_are_planes_has_nothing_to_read_and_no_wrong_pixels() {
    let planes = [image(Shape::plane(8, 8)), image(Shape::plane(8, 8))];
    assert!(reads(&planes, Extent::Volume, 9, 1, 0).is_empty());
    let why = no_volume(&planes).unwrap();
    assert!(why.starts_with("none of the first 2 images is a volume"), "{why}");
    assert_eq!(no_volume(&[image(Shape::plane(8, 8)), image(Shape([1, 1, 2, 8, 8]))]), None);
}

#[test]
fn reads_fit_their_volumes_and_differ_from_round_to_round() {
    let images = [image(Shape([1, 2, 20, 70, 90])), image(Shape::plane(8, 8)), image(Shape([3, 1, 2, 5, 6]))];
    for &extent in Extent::ALL {
        let some = reads(&images, extent, 9, 1, 0);
        assert_eq!(some.len(), 9);
        assert!(some.iter().all(|r| r.row != 1 && r.region.fits(images[r.row].info.shape)));
        let starts = |round| -> Vec<_> {
            reads(&images, extent, 9, 1, round).iter().map(|r| (r.row, r.region.start)).collect()
        };
        assert_eq!(starts(0), starts(0));
        assert_ne!(starts(0), starts(1));
    }
    assert!(reads(&images[1..2], Extent::Plane, 9, 1, 0).is_empty());
}

#[test]
fn one_wrong_pixel_is_seen_and_only_inside_the_region() {
    let InMemory { info, mut pixels, .. } = image(Shape([1, 1, 3, 4, 5]));
    let region = Region { start: [0, 0, 1, 1, 2], size: [1, 1, 2, 2, 3] };
    let mut cut = vec![0; region.pixels()];
    clip_runs(&info.shape.full(), &region, |from, to, n| {
        cut[to..to + n].copy_from_slice(&pixels[from..from + n]);
    });
    assert!(same_pixels(&pixels, info.shape, &region, &cut, 1));
    pixels[0] ^= 1;
    assert!(same_pixels(&pixels, info.shape, &region, &cut, 1));
    cut[11] ^= 1;
    assert!(!same_pixels(&pixels, info.shape, &region, &cut, 1));
    assert!(!same_pixels(&pixels, info.shape, &region, &cut[1..], 1));
}

#[test]
fn the_best_layout_is_named_with_its_interval() {
    let mut table = Table::new(BENCHMARK.name);
    for (format, layout, rate, amplified) in [
        ("tiff", "z-plane", 900.0, 1.0),
        ("ome-zarr", "z-plane", 100.0, 1.0),
        ("ome-zarr", "volume", 20.0, 20.0),
    ] {
        for run in 0..7 {
            table.push(row![
                ("format", format),
                ("layout", layout),
                ("operation", "read_plane"),
                ("run", run),
                ("verified", true),
                ("reads_per_s", rate * (1.0 + 0.001 * f64::from(run))),
                ("read_amplification", amplified)
            ]);
        }
    }
    let found = findings(&table, &Judge::new(1, Some(0.02)));
    let finding = &found[0].finding;
    assert!(
        finding.text.contains("z-plane chunks are read 5.00 (5.00–5.00) times as fast as volume"),
        "{}",
        finding.text
    );
    assert!(
        !finding.text.contains("tiff") && finding.detail.contains("tiff: z-plane 903"),
        "{}",
        finding.detail
    );
    assert!(finding.detail.contains("volume 20.0"), "{}", finding.detail);
    let noisy = findings(&table, &Judge::new(1, Some(9.0)));
    assert!(noisy[0].finding.text.contains("cannot be told apart"), "{}", noisy[0].finding.text);
}
