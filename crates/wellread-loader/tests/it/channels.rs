//! Channels that are asked for by name stand where they stand in each image.

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wellread_image::{Channel, ImageMetadata, PixelType, Shape};
use wellread_loader::{
    Dataset, GroupFields, GroupStats, ItemContext, Loader, MemoryStore, Normalize, Scale, Stats, Targets,
    Transform,
};
use wellread_store::concat::Concat;
use wellread_store::{Error, Result, Store, default_answers, delegate_store, mixed_channels};

/// Images whose channel number `c` of row `r` has the value `10 * r + c` everywhere.
fn images(name: &str, channels: &[&[&str]]) -> MemoryStore {
    let mut store = MemoryStore::new(name);
    for (row, channels) in channels.iter().enumerate() {
        let of = |name: &&str| Channel { id: (*name).into(), name: (*name).into(), ..Channel::default() };
        let metadata = ImageMetadata {
            channels: channels.iter().map(of).collect(),
            ..ImageMetadata::named(format!("{row}"))
        };
        let pixels = (0..channels.len()).flat_map(|c| vec![(10 * row + c) as u8; 16]).collect();
        store.push_with(metadata, Shape([1, channels.len(), 1, 4, 4]), PixelType::U8, pixels).unwrap();
    }
    store
}

const MIXED: [&[&str]; 4] = [&["DNA", "ER"], &["ER", "DNA"], &["RNA", "ER", "AGP", "DNA"], &["DNA"]];

/// The first value of each channel of each row.
fn values(loader: &Loader) -> Vec<Vec<f32>> {
    let mut found = vec![];
    for batch in loader.iter_at(0, 0) {
        let batch = batch.unwrap();
        found
            .extend((0..batch.len()).map(|i| batch.image(i).iter().step_by(16).copied().collect::<Vec<_>>()));
    }
    found
}

#[test]
fn names_are_looked_up_in_each_image() {
    let dataset = Dataset::from_store(Box::new(images("set", &MIXED)));
    for workers in [0, 2] {
        let builder = Loader::builder(&dataset).batch_size(2).workers(workers);
        let one = builder.clone().named_channels([("DNA", 0)]).build().unwrap();
        for _epoch in 0..2 {
            assert_eq!(values(&one), [[0.0], [11.0], [23.0], [30.0]]);
        }
        let both =
            builder.clone().named_channels([("ER", 1), ("DNA", 0)]).rows(vec![0, 1, 2]).build().unwrap();
        assert_eq!(values(&both), [[1.0, 0.0], [10.0, 11.0], [21.0, 23.0]]);
        // Numbers are numbers.
        let first = builder.channels([0]).build().unwrap();
        assert_eq!(values(&first), [[0.0], [10.0], [20.0], [30.0]]);
    }
    let (mut out, mut context) = (vec![], ItemContext::new());
    let transform = Transform::default().named_channels([("DNA", 0)]);
    dataset.sample_into(1, &transform, &mut out, &mut context).unwrap();
    assert_eq!(out, [11.0; 16]);
}

/// The number of a channel is that of the first image, also where an image has fewer channels than that.
#[test]
fn single_images_may_have_other_numbers_of_channels() {
    let dataset =
        Dataset::from_store(Box::new(images("set", &[&["AGP", "DNA"], &["DNA"], &["ER", "DNA", "AGP"]])));
    let transform = Transform::default().named_channels([("DNA", 1)]);
    for rows in [[1, 2, 0], [0, 1, 2]] {
        let (mut out, mut context) = (vec![], ItemContext::new());
        for row in rows {
            dataset.sample_into(row, &transform, &mut out, &mut context).unwrap();
            assert_eq!(out, [[1.0; 16], [10.0; 16], [21.0; 16]][row]);
        }
    }
    let missing = Transform::default().named_channels([("AGP", 0)]);
    let error = dataset.sample_into(1, &missing, &mut vec![], &mut ItemContext::new()).unwrap_err();
    assert!(error.to_string().contains("no channel \"AGP\""), "{error}");
}

#[test]
fn images_without_the_name_are_named() {
    let parts: Vec<Arc<dyn Store>> =
        vec![Arc::new(images("one", &[&["DNA", "ER"]])), Arc::new(images("two", &[&["AGP", "RNA"]]))];
    let dataset = Dataset::from_store(Box::new(Concat::of(parts)));
    let loader = Loader::builder(&dataset).batch_size(1).named_channels([("DNA", 0)]).build().unwrap();
    let mut batches = loader.iter_at(0, 0);
    assert_eq!(batches.next().unwrap().unwrap().image(0), [0.0; 16]);
    let error = batches.next().unwrap().unwrap_err().to_string();
    for part in ["row 1", "no channel \"DNA\"", "AGP", "RNA"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn targets_go_by_names_too() {
    let dataset = Dataset::from_store(Box::new(images("set", &MIXED[..2])));
    let targets = Targets::image(&dataset).named_channels([("ER", 1)]);
    let loader = Loader::builder(&dataset).batch_size(2).targets(targets).build().unwrap();
    let batch = loader.iter_at(0, 0).next().unwrap().unwrap();
    let targets = batch.targets().unwrap();
    assert_eq!(targets.image_as::<f32>(0), [1.0; 16]);
    assert_eq!(targets.image_as::<f32>(1), [10.0; 16]);
}

/// Illumination fields of these names, each of one value.
fn field_files(fields: &[(&str, f32)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for &(name, value) in fields {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4), }";
        let header = format!("{header:<117}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend([value; 16].iter().flat_map(|value| value.to_le_bytes()));
        std::fs::write(folder.path().join(format!("{name}.npy")), bytes).unwrap();
    }
    folder
}

#[test]
fn illumination_is_refused_where_a_row_would_take_the_field_of_another_channel() {
    let folder = field_files(&[("DNA", 2.0), ("ER", 5.0), ("1", 2.0), ("2", 5.0)]);
    let fields = |pattern: &str| {
        GroupFields::new(format!("{}/{pattern}.npy", folder.path().display()), None::<String>).unwrap()
    };
    let second = |builder: wellread_loader::LoaderBuilder, pattern: &str| {
        let loader = builder.batch_size(1).illumination_by(fields(pattern)).build().unwrap();
        let mut batches = loader.iter_at(0, 0);
        assert!(batches.next().unwrap().is_ok());
        batches.next().unwrap().map(|batch| batch.image(0).to_vec())
    };
    let of = |channels: &[&[&str]]| Dataset::from_store(Box::new(images("set", channels)));
    // A name that repeats tells no order.
    let twice = of(&[&["DNA", "ER", "ER"], &["ER", "DNA", "ER"]]);
    let error = second(Loader::builder(&twice), "{channel}").unwrap_err();
    assert!(error.to_string().contains("row 1: the channels are"), "{error}");
    let same = of(&[&["DNA", "ER", "ER"], &["DNA", "ER", "ER"]]);
    assert_eq!(second(Loader::builder(&same), "{channel}").unwrap()[0], 5.0);
    // Nor do numbers beside channels by name.
    let moved = of(&MIXED[..2]);
    let named = Loader::builder(&moved).named_channels([("ER", 1)]);
    let error = second(named.clone(), "{channel:1}").unwrap_err();
    assert!(error.to_string().contains("the number that a channel has in the first image"), "{error}");
    assert_eq!(second(named, "{channel}").unwrap()[0], 2.0);
}

#[test]
fn illumination_by_names_follows_them() {
    let folder = field_files(&[("DNA", 2.0), ("ER", 5.0)]);
    let pattern = format!("{}/{{channel}}.npy", folder.path().display());
    let transform = || Transform {
        fields: Some(Arc::new(GroupFields::new(pattern.clone(), None::<String>).unwrap())),
        ..Transform::default()
    };
    let dataset = Dataset::from_store(Box::new(images("set", &MIXED[..2])));
    let all = Loader::builder(&dataset).batch_size(2).transform(transform()).build().unwrap();
    assert_eq!(values(&all), [[0.0, 0.2], [5.5, 2.0]]);
    let named = Loader::builder(&dataset).batch_size(2).transform(transform().named_channels([("ER", 1)]));
    assert_eq!(values(&named.build().unwrap()), [[0.2], [2.0]]);
    // Each channel with a path of its own, in another order than the images have them.
    let path = |name: &str| format!("{}/{name}.npy", folder.path().display());
    let of = |names: &[&str]| {
        let named = names.iter().map(|&name| (name, path(name), None::<String>));
        GroupFields::by_name(named).unwrap()
    };
    let build = |names: &[&str]| Loader::builder(&dataset).batch_size(2).illumination_by(of(names)).build();
    assert_eq!(values(&build(&["ER", "DNA"]).unwrap()), [[0.0, 0.2], [5.5, 2.0]]);
    let error = build(&["DNA"]).unwrap_err();
    assert!(error.is_choice() && error.to_string().contains("given for the channel \"ER\""), "{error}");
}

#[test]
fn two_images_with_other_channels_at_the_same_number_are_named() {
    let find = |store: &dyn Store, rows: Option<&[usize]>, channels: Option<&[usize]>| {
        mixed_channels::find(store, rows, channels, 64).map(|mixed| mixed.two)
    };
    let called = |name: &str, channels: &[&str]| -> (String, Vec<String>) {
        (name.to_owned(), channels.iter().map(|&channel| channel.to_owned()).collect())
    };
    let set = images("set", &MIXED);
    assert_eq!(
        find(&set, None, None),
        Some([called("0", &["DNA", "ER"]), called("1", &["ER", "DNA"])]),
        "one set, of the same names in two orders"
    );
    assert_eq!(
        find(&set, Some(&[0, 2]), Some(&[0])),
        Some([called("0", &["DNA"]), called("2", &["RNA"])]),
        "of the rows and channels that are taken"
    );
    // The same ones at these numbers, then one of fewer channels, then no names.
    assert_eq!(find(&set, Some(&[0, 2]), Some(&[1])), None);
    assert_eq!(find(&set, Some(&[0, 3]), None), None);
    assert_eq!(find(&images("set", &[&["", ""], &["DNA", "ER"]]), None, None), None);
    // The last image of many is looked at, too.
    let mut many: Vec<&[&str]> = vec![&["DNA", "ER"]; 100];
    many[99] = &["ER", "DNA"];
    let two = mixed_channels::find(&images("set", &many), None, None, 3).unwrap().two;
    assert_eq!(two[1], called("99", &["ER", "DNA"]));
    // Sets are named where the two are of two sets.
    let both = Concat::of(vec![
        Arc::new(images("one", &MIXED[..1])) as Arc<dyn Store>,
        Arc::new(images("two", &MIXED[1..2])),
    ]);
    assert_eq!(find(&both, None, None), Some([called("one", &["DNA", "ER"]), called("two", &["ER", "DNA"])]));
}

#[test]
fn statistics_have_names_that_all_images_agree_on() {
    let of = |channels: &[&[&str]]| {
        let stats = Stats::of(&images("set", channels), &[50.0], 1, &|| {}).unwrap();
        stats.channels.into_iter().map(|channel| channel.name).collect::<Vec<_>>()
    };
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(of(&[&["DNA", "ER"], &["DNA", "ER"]]), [some("DNA"), some("ER")]);
    assert_eq!(of(&[&["DNA", "ER"], &["DNA", "AGP"]]), [some("DNA"), None]);
    // In another order: by name, as are images that lack some.
    assert_eq!(of(&MIXED[..2]), [some("DNA"), some("ER")]);
    assert_eq!(of(&[&["DNA", "ER"], &["ER"], &["DNA"]]), [some("DNA"), some("ER")]);
    assert_eq!(of(&[&["DNA", "ER"], &["ER", "RNA"]]), [None, None]);
}

#[test]
fn statistics_are_of_names_where_images_differ_in_order() {
    let of = |channels: &[&[&str]]| Stats::of(&images("set", channels), &[50.0], 2, &|| {}).unwrap();
    let means = |stats: &Stats| stats.channels.iter().map(|channel| channel.mean).collect::<Vec<_>>();
    // Rows have the values 0 1, 10 11, 20 and 30.
    let stats = of(&[&["DNA", "ER"], &["ER", "DNA"], &["ER"], &["ER"]]);
    assert_eq!(means(&stats), [Some(5.5), Some(15.25)]);
    assert_eq!((stats.reordered, stats.other_names), (3, 0));
    let stats = of(&[&["DNA", "ER"], &["ER", "DNA"], &["RNA"]]);
    assert_eq!(means(&stats), [Some(10.0), Some(6.0)]);
    assert_eq!((stats.reordered, stats.other_names), (0, 2));
    let stats = of(&[&["DNA", "ER"], &["DNA", "ER"]]);
    assert_eq!((stats.reordered, stats.other_names), (0, 0));
    // The first has no names: the names of others count all the same.
    let stats = of(&[&["", ""], &["DNA", "ER"], &["ER", "DNA"]]);
    assert_eq!(means(&stats), [Some(10.0), Some(11.0)]);
    assert_eq!((stats.reordered, stats.other_names), (0, 2));
    let stats = of(&[&["", ""], &["", ""]]);
    assert_eq!((stats.reordered, stats.other_names), (0, 0));
}

/// Statistics whose channels have these names, means and standard deviations, to normalise by.
fn normalize(folder: &Path, channels: &[(&str, f64, f64)]) -> Normalize {
    read_normalize(folder, channels).unwrap()
}

fn read_normalize(folder: &Path, channels: &[(&str, f64, f64)]) -> Result<Normalize> {
    let names: Vec<&str> = channels.iter().map(|(name, ..)| *name).collect();
    let mut stats = Stats::of(&images("set", &[names.as_slice()]), &[50.0], 1, &|| {}).unwrap();
    for (channel, &(_, mean, std)) in stats.channels.iter_mut().zip(channels) {
        (channel.mean, channel.std) = (Some(mean), Some(std));
    }
    let path = folder.join("stats.json");
    std::fs::write(&path, serde_json::to_vec(&stats).unwrap()).unwrap();
    Normalize::from_stats(path)
}

#[test]
fn a_deviation_that_is_zero_as_a_single_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for std in [0.0, 1e-50, 1e-40, 1e300] {
        let error = read_normalize(folder.path(), &[("DNA", 1.0, 2.0), ("ER", 1.0, std)]).unwrap_err();
        assert!(
            error.to_string().contains("channel 1 has no standard deviation to divide by"),
            "{std}: {error}"
        );
    }
    assert!(read_normalize(folder.path(), &[("DNA", 1.0, 1e-37)]).is_ok());
}

#[test]
fn statistics_go_by_names() {
    let folder = tempfile::tempdir().unwrap();
    let of = |channels: &[(&str, f64, f64)]| normalize(folder.path(), channels);
    let all = of(&[("AGP", 1.0, 1.0), ("DNA", 2.0, 2.0), ("ER", 4.0, 4.0)]);
    let dataset = Dataset::from_store(Box::new(images("set", &MIXED[..2])));
    let build = |normalize: &Normalize, names: &[(&'static str, usize)]| {
        let transform = Transform::default().normalize_with(normalize.clone());
        let transform =
            if names.is_empty() { transform } else { transform.named_channels(names.iter().copied()) };
        Loader::builder(&dataset).batch_size(2).transform(transform).build()
    };
    // DNA and ER are 0 and 1 in the first image, 11 and 10 in the second.
    let expected = [[-1.0, -0.75], [4.5, 1.5]];
    assert_eq!(values(&build(&all, &[]).unwrap()), expected);
    assert_eq!(values(&build(&all, &[("ER", 1), ("DNA", 0)]).unwrap()), [[-0.75, -1.0], [1.5, 4.5]]);
    assert_eq!(values(&build(&all, &[("ER", 1)]).unwrap()), [[-0.75], [1.5]]);
    let (mut out, mut context) = (vec![], ItemContext::new());
    let transform = Transform::default().normalize_with(all);
    dataset.sample_into(1, &transform, &mut out, &mut context).unwrap();
    assert_eq!([out[0], out[16]], [4.5, 1.5]);
    // A name that they lack.
    let few = of(&[("DNA", 2.0, 2.0), ("RNA", 4.0, 5.0)]);
    assert_eq!(values(&build(&few, &[("DNA", 0)]).unwrap()), [[-1.0], [4.5]]);
    let error = build(&few, &[]).unwrap_err();
    assert!(
        error.is_choice() && error.to_string().contains("no statistics of the channel \"ER\""),
        "{error}"
    );
}

/// Images in a bucket that no longer answers.
struct Dead {
    inner: MemoryStore,
    asked: Arc<AtomicUsize>,
}

impl Store for Dead {
    delegate_store!(self => self.inner; format, path, len, row_info, layout, files, files_of, has_checksums);
    delegate_store!(self => self.inner; hints, row_hints, heads, ranges, check, read);
    default_answers!(name, scan);

    fn remote_path(&self) -> Option<&Path> {
        Some(Path::new("s3://bucket/set"))
    }
    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
        Err(Error::io("s3://bucket/set", "cannot read", &late).row(row).unreadable())
    }
}

#[test]
fn a_server_that_does_not_answer_is_asked_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let dead = || Dead { inner: images("set", &[MIXED[0]; 20]), asked: Arc::clone(&asked) };
    assert_eq!(mixed_channels::find(&dead(), None, None, 64), None);
    assert_eq!(asked.swap(0, Ordering::Relaxed), 1);
    let folder = tempfile::tempdir().unwrap();
    let transform = Transform::default().normalize_with(normalize(folder.path(), &[("DNA", 2.0, 2.0)]));
    let dataset = Dataset::from_store(Box::new(dead()));
    let error = Loader::builder(&dataset).batch_size(2).transform(transform).build().unwrap_err();
    assert_eq!((error.row_index(), error.may_pass()), (Some(0), true), "{error}");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn ranges_of_statistics_go_by_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stats.json");
    let range = |channels: &[(&str, f64)]| {
        let names: Vec<&str> = channels.iter().map(|(name, _)| *name).collect();
        let mut stats = Stats::of(&images("set", &[names.as_slice()]), &[25.0, 75.0], 1, &|| {}).unwrap();
        for (channel, &(_, high)) in stats.channels.iter_mut().zip(channels) {
            for percentile in &mut channel.percentiles {
                percentile.value = if percentile.percent == 25.0 { 0.0 } else { high };
            }
        }
        std::fs::write(&path, serde_json::to_vec(&stats).unwrap()).unwrap();
        Scale::from_stats(&path, 25.0, 75.0).unwrap()
    };
    let dataset = Dataset::from_store(Box::new(images("set", &MIXED[..2])));
    let build = |scale: &Scale| Loader::builder(&dataset).batch_size(2).scale_with(scale.clone()).build();
    // DNA and ER are 0 and 1 in the first image, 11 and 10 in the second.
    let all = range(&[("AGP", 1.0), ("DNA", 16.0), ("ER", 32.0)]);
    assert_eq!(values(&build(&all).unwrap()), [[0.0, 0.03125], [0.6875, 0.3125]]);
    let (mut out, mut context) = (vec![], ItemContext::new());
    dataset.sample_into(1, &Transform::default().scale_with(all), &mut out, &mut context).unwrap();
    assert_eq!([out[0], out[16]], [0.6875, 0.3125]);
    let error = build(&range(&[("DNA", 16.0), ("RNA", 32.0)])).unwrap_err();
    assert!(
        error.is_choice() && error.to_string().contains("no statistics of the channel \"ER\""),
        "{error}"
    );
    // By number where nobody has names.
    let plain = Dataset::from_store(Box::new(images("set", &[&["", ""]])));
    let of_plain = range(&[("", 16.0), ("", 32.0)]);
    let loader = Loader::builder(&plain).scale_with(of_plain).build().unwrap();
    assert_eq!(values(&loader), [[0.0, 0.03125]]);
}

#[test]
fn statistics_of_groups_go_by_names() {
    let plates: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let columns = RecordBatch::try_from_iter([("plate", plates)]).unwrap();
    let dataset = Dataset::from_store(Box::new(images("set", &MIXED[..2]))).with_columns(columns).unwrap();
    let mut stats = GroupStats::of(dataset.store(), &["plate".to_owned()], &[50.0], 1, &|| {}).unwrap();
    // Means of DNA and ER, and of ER and DNA.
    for (group, means) in stats.groups.iter_mut().zip([[2.0, 4.0], [6.0, 9.0]]) {
        for (channel, mean) in group.stats.channels.iter_mut().zip(means) {
            (channel.mean, channel.std) = (Some(mean), Some(2.0));
        }
    }
    let normalize = stats.normalize(std::path::Path::new("stats.json")).unwrap();
    let builder = Loader::builder(&dataset).batch_size(2).normalize_with(normalize);
    assert_eq!(values(&builder.clone().build().unwrap()), [[-1.0, -1.5], [1.0, 2.0]]);
    assert_eq!(values(&builder.named_channels([("ER", 1)]).build().unwrap()), [[-1.5], [2.0]]);
}
