//! Single items: what is looked at once, and not for each of them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wellread_image::{Channel, ImageMetadata, PixelType, Shape};
use wellread_loader::{Dataset, ItemContext, MemoryStore, Stats, Transform};
use wellread_store::{Result, Store, delegate_store};

/// Counts the looks at metadata of images.
struct Counted(Box<dyn Store>, Arc<AtomicUsize>);

impl Store for Counted {
    delegate_store!(self => self.0; format, path, remote_path, len, name, layout, files, files_of, has_checksums);
    delegate_store!(self => self.0; hints, row_hints, row_info, heads, ranges, check, read, scan);

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.metadata(row)
    }
}

/// In files it is a part of each to be read.
#[test]
fn names_of_channels_are_looked_at_once() {
    let mut store = MemoryStore::new("set");
    for row in 0..3u8 {
        let of = |name: &str| Channel { id: name.into(), name: name.into(), ..Channel::default() };
        let channels = ["DNA", "ER"].map(of).to_vec();
        let metadata = ImageMetadata { channels, ..ImageMetadata::named(format!("{row}")) };
        let pixels = (0..32).map(|i| 7 * row + i).collect();
        store.push_with(metadata, Shape([1, 2, 1, 4, 4]), PixelType::U8, pixels).unwrap();
    }
    let stats = Stats::of(&store, &[50.0], 1, &|| {}).unwrap();
    let normalize = |factor: f32| {
        let of = stats.normalize(Path::new("stats.json")).unwrap();
        Transform::default().scale(factor).normalize_with(of)
    };
    let looks = Arc::new(AtomicUsize::new(0));
    let dataset = || Dataset::from_store(Box::new(Counted(Box::new(store.clone()), Arc::clone(&looks))));
    let (first, second) = (dataset(), dataset());
    let (mut out, mut context) = (vec![], ItemContext::new());
    let mut epoch = |set: &Dataset, transform: &Transform| {
        let before = looks.load(Ordering::Relaxed);
        let mut values = vec![];
        for row in 0..3 {
            set.sample_into(row, transform, &mut out, &mut context).unwrap();
            values.extend_from_slice(&out);
        }
        (looks.load(Ordering::Relaxed) - before, values)
    };
    let (by_one, by_two) = (normalize(1.0), normalize(2.0));
    let (some, values) = epoch(&first, &by_one);
    assert!(some > 0);
    assert_eq!(epoch(&first, &by_one), (0, values.clone()));
    // Another set and another transform are looked at anew.
    let (again, same) = epoch(&second, &by_one);
    assert!(again > 0 && same == values);
    assert!(epoch(&second, &by_two).0 > 0);
}
