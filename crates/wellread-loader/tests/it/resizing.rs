//! Resizing against torchvision, and crops of random size against their definition.

use wellread_image::{PixelType, Shape};
use wellread_loader::{Crop, Dataset, Filter, ItemContext, MemoryStore, Resize, Transform};

const SIZE: [usize; 2] = [13, 17];

fn dataset() -> Dataset {
    let [h, w] = SIZE;
    let pixels =
        (0..h * w).map(|n| (n / w, n % w)).map(|(i, j)| ((i * 37 + j * 101 + i * j * 5) % 256) as u8);
    let mut store = MemoryStore::new("pattern");
    store.push("a", Shape::plane(h, w), PixelType::U8, pixels.collect()).unwrap();
    Dataset::from_store(Box::new(store))
}

/// The output of `torchvision.transforms.v2.functional.resize` (0.29) for `uint8`, bilinear, by `antialias`.
const TORCHVISION: [([usize; 2], bool, &[u8]); 6] = [
    (
        [5, 6],
        true,
        &[
            120, 132, 122, 133, 127, 150, 128, 135, 128, 131, 133, 119, 124, 140, 140, 143, 112, 114, 110,
            117, 124, 114, 128, 158, 126, 122, 135, 111, 135, 127,
        ],
    ),
    (
        [5, 6],
        false,
        &[
            126, 168, 89, 165, 75, 124, 140, 120, 135, 170, 150, 105, 107, 201, 167, 176, 35, 129, 194, 116,
            93, 74, 111, 174, 67, 43, 138, 79, 187, 154,
        ],
    ),
    (
        [20, 9],
        true,
        &[
            65, 130, 159, 156, 102, 180, 129, 118, 152, 84, 153, 149, 128, 109, 160, 114, 142, 154, 107, 168,
            129, 104, 119, 133, 99, 167, 152, 115, 117, 89, 148, 129, 106, 109, 163, 131, 135, 119, 96, 137,
            109, 134, 133, 152, 126, 153, 148, 129, 107, 83, 181, 159, 137, 126, 108, 154, 167, 151, 133,
            154, 138, 122, 104, 104, 141, 157, 147, 136, 127, 117, 108, 97, 130, 117, 114, 111, 109, 103, 96,
            93, 98, 156, 149, 152, 154, 159, 160, 81, 78, 77, 135, 139, 148, 156, 166, 175, 102, 105, 104,
            66, 88, 103, 118, 130, 148, 160, 174, 178, 88, 116, 137, 113, 100, 121, 142, 163, 184, 114, 123,
            139, 114, 103, 94, 121, 148, 176, 140, 98, 93, 121, 153, 67, 100, 133, 154, 103, 100, 121, 161,
            127, 114, 126, 118, 154, 83, 110, 130, 176, 107, 142, 150, 107, 149, 109, 132, 85, 137, 117, 114,
            160, 103, 128, 135, 161, 106, 126, 127, 87, 145, 128, 126, 154, 184, 134, 124, 134, 68, 130, 152,
            128,
        ],
    ),
    (
        [20, 9],
        false,
        &[
            45, 150, 170, 105, 40, 231, 166, 100, 149, 64, 173, 171, 124, 77, 164, 117, 150, 149, 89, 184,
            154, 153, 127, 97, 67, 198, 147, 114, 104, 63, 197, 177, 135, 92, 155, 128, 140, 98, 56, 144,
            118, 185, 142, 148, 122, 157, 130, 93, 57, 21, 223, 189, 155, 121, 109, 161, 131, 101, 71, 132,
            122, 113, 103, 103, 161, 147, 134, 121, 115, 109, 103, 96, 128, 139, 149, 161, 171, 153, 130,
            113, 96, 153, 170, 187, 204, 221, 209, 63, 71, 79, 133, 146, 160, 174, 188, 191, 61, 84, 107, 66,
            67, 69, 70, 71, 100, 124, 152, 181, 88, 95, 101, 90, 115, 132, 150, 168, 185, 114, 103, 124, 124,
            165, 115, 136, 157, 178, 139, 79, 125, 168, 215, 24, 69, 115, 160, 99, 104, 158, 212, 118, 63,
            116, 122, 159, 76, 136, 151, 204, 59, 113, 166, 115, 153, 102, 168, 60, 100, 109, 151, 191, 72,
            135, 127, 199, 72, 100, 159, 84, 142, 120, 132, 146, 222, 100, 119, 196, 17, 93, 170, 132,
        ],
    ),
    (
        [13, 4],
        true,
        &[
            113, 144, 143, 134, 146, 116, 123, 151, 100, 128, 114, 138, 147, 106, 150, 139, 135, 171, 141,
            110, 121, 110, 101, 97, 168, 176, 150, 68, 79, 113, 148, 175, 126, 120, 108, 162, 112, 117, 99,
            133, 101, 153, 137, 134, 117, 112, 126, 121, 164, 133, 106, 138,
        ],
    ),
    (
        [13, 4],
        false,
        &[
            164, 113, 223, 172, 209, 148, 86, 185, 94, 214, 142, 134, 140, 57, 230, 147, 89, 123, 93, 95,
            134, 157, 149, 108, 179, 224, 236, 57, 64, 66, 100, 166, 109, 132, 156, 179, 154, 167, 19, 128,
            103, 233, 107, 141, 149, 76, 163, 90, 194, 142, 26, 102,
        ],
    ),
];

/// `resized_crop(image, top=2, left=3, height=9, width=11, size=[6, 7], antialias=True)`.
const CROPPED: &[u8] = &[
    113, 112, 136, 113, 134, 105, 173, 172, 155, 138, 117, 155, 143, 132, 130, 134, 138, 144, 135, 104, 88,
    129, 138, 133, 141, 154, 141, 142, 122, 141, 97, 119, 91, 112, 132, 95, 132, 171, 123, 111, 150, 91,
];

#[test]
fn resizing_is_within_one_grey_level_of_torchvision() {
    let dataset = dataset();
    let (mut out, mut context) = (vec![], ItemContext::new());
    for ([height, width], antialias, expected) in TORCHVISION {
        let filter = if antialias { Filter::Antialias } else { Filter::Bilinear };
        let transform = Transform::default().resize_with(Resize { height, width, filter });
        dataset.sample_into(0, &transform, &mut out, &mut context).unwrap();
        let worst = out.iter().zip(expected).map(|(a, b)| (a - *b as f32).abs()).fold(0.0, f32::max);
        assert!(out.len() == expected.len() && worst <= 1.0, "{height}x{width} {antialias}: {worst}");
    }
    // A crop of a given place, by a store of one smaller image.
    let mut cropped = MemoryStore::new("part");
    let (_, pixels) = dataset.read(0).unwrap();
    let part = (2..11).flat_map(|y| pixels[y * SIZE[1] + 3..][..11].to_vec()).collect();
    cropped.push("a", Shape::plane(9, 11), PixelType::U8, part).unwrap();
    let transform =
        Transform::default().resize_with(Resize { height: 6, width: 7, filter: Filter::Antialias });
    let cropped = Dataset::from_store(Box::new(cropped));
    cropped.sample_into(0, &transform, &mut out, &mut context).unwrap();
    assert!(out.iter().zip(CROPPED).all(|(a, b)| (a - *b as f32).abs() <= 1.0));
}

#[test]
fn crops_of_random_size_keep_to_their_ranges() {
    let (y, x) = (480usize, 640usize);
    let mut transform = Transform::default().random_resized_crop(32, 32);
    let n = 4000;
    let place = |t: &Transform, row| t.placement(Shape::plane(y, x), 7, 0, row).unwrap();
    let (mut areas, mut logs) = (0.0, 0.0);
    for row in 0..n {
        let p = place(&transform, row);
        assert!(p.top + p.height <= y && p.left + p.width <= x);
        let (area, ratio) = ((p.height * p.width) as f64 / (y * x) as f64, p.width as f64 / p.height as f64);
        // Rounded to whole pixels.
        assert!((0.079..=1.0).contains(&area) && (0.74..1.35).contains(&ratio), "{p:?}");
        areas += area;
        logs += ratio.ln();
    }
    // The means of 20,000 draws of torchvision's `get_params`, within six standard errors of 4,000. Large areas of
    // unfitting proportion are drawn again, and proportions lean to the image's own.
    let (area, log) = (areas / n as f64, logs / n as f64);
    assert!((area - 0.4318).abs() < 0.023 && (log - 0.0312).abs() < 0.016, "{area} {log}");
    // No draw fits: the largest part in the middle is taken.
    transform.crop = Crop::RandomResized { scale: [1.0, 1.0], ratio: [1.0, 1.0] };
    let p = place(&transform, 0);
    assert_eq!((p.top, p.left, p.height, p.width), (0, 80, 480, 480));
    transform.crop = Crop::RandomResized { scale: [1.0, 1.0], ratio: [3.0, 4.0] };
    let p = place(&transform, 0);
    assert_eq!((p.height, p.width, p.top), (213, 640, 133));
    transform.resize = None;
    assert!(transform.check().unwrap_err().to_string().contains("random size"));
}

#[test]
fn a_square_is_a_share_of_the_shorter_side() {
    let square = Transform::default().crop_square(224.0 / 256.0);
    let place = |y, x| {
        let p = square.placement(Shape::plane(y, x), 0, 0, 0).unwrap();
        (p.top, p.left, p.height, p.width)
    };
    assert_eq!(place(256, 512), (16, 144, 224, 224));
    assert_eq!(place(300, 256), (38, 16, 224, 224));
    assert_eq!(place(1, 9), (0, 4, 1, 1));
    assert_eq!(square.clone().resize(7, 7).output_shape(Shape::plane(40, 30)).unwrap(), Shape::plane(7, 7));
    for share in [0.0, 1.5, f32::NAN] {
        assert!(Transform::default().crop_square(share).check().unwrap_err().to_string().contains("share"));
    }
}
