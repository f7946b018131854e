//! OME-Zarr: golden sets, round trips, agreement with zarrs over codecs, layouts and axes.

use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellread_image::{Channel, ImageMetadata, PhysicalSize, PixelType, Region, Shape};
use wellread_store::{
    Compression, CopySink, ImageView, OpenOptions, Request, Scratch, Store, WriteOptions, create, open,
    read_image, read_region,
};
use zarrs::array::{Array, ArrayBytes, ArrayMetadata};
use zarrs::filesystem::FilesystemStore;

/// The folder of shared test data, or `None` with a printed line where a clone has none.
fn shared_data() -> Option<PathBuf> {
    let path = std::env::var_os("WELLREAD_SHARED").map_or_else(
        || Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).to_owned(),
        PathBuf::from,
    );
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no test data at {} (set WELLREAD_SHARED)", path.display());
    None
}

pub(crate) fn open_at(path: &Path) -> Box<dyn Store> {
    open(path, &OpenOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Pixels that compress a little and differ everywhere.
pub(crate) fn pattern(shape: Shape, dtype: PixelType, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    (0..shape.pixels() * dtype.size())
        .map(|i| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if i % 3 == 0 { (i / 7) as u8 } else { (state >> 60) as u8 }
        })
        .collect()
}

#[test]
fn golden_sets_read_back_to_their_checksums() {
    let Some(data) = shared_data() else { return };
    let mut checked = 0;
    for set in ["jump/uint16-1x1x1", "jump/stack-5d", "jump/noise-uint8", "examplehuman/uint8-1x1x1"] {
        let set = data.join("golden").join(set);
        let expected: Value =
            serde_json::from_slice(&std::fs::read(set.join("expected.json")).unwrap()).unwrap();
        let expected = expected["images"].as_array().unwrap();
        for version in ["0.4", "0.5"] {
            let store = open_at(&set.join(format!("ome-zarr-{version}")));
            assert_eq!((store.format(), store.len()), ("ome-zarr", expected.len()));
            assert!(store.layout().unwrap().variant.starts_with(version));
            for row in 0..store.len() {
                let name = store.name(row).unwrap();
                let image = expected.iter().find(|i| i["name"] == name.as_str()).unwrap();
                let (info, pixels) = read_image(&*store, row).unwrap();
                assert_eq!(json!(info.shape), image["shape_tczyx"], "{name}");
                assert_eq!(json!(info.dtype), image["dtype"], "{name}");
                let sha = Sha256::digest(&pixels).iter().fold(String::new(), |s, b| s + &format!("{b:02x}"));
                assert_eq!(sha, image["sha256"].as_str().unwrap(), "{name} of {}", set.display());
                checked += 1;
            }
        }
    }
    assert!(checked > 50);
}

#[test]
fn levels_of_a_golden_image() {
    let Some(data) = shared_data() else { return };
    let set = data.join("golden/jump/uint16-1x1x1/ome-zarr-0.5");
    let at = |level| open(&set, &OpenOptions { level, ..OpenOptions::default() }).unwrap();
    let full = at(0).row_info(0).unwrap().shape;
    let half = at(1).row_info(0).unwrap().shape;
    assert_eq!((half.y(), half.x()), (full.y() / 2, full.x() / 2));
    read_image(&*at(1), 0).unwrap();
    let error = at(5).row_info(0).unwrap_err().to_string();
    assert!(error.contains("5 level(s)") && error.contains("from 0"), "{error}");
}

fn dtypes() -> impl Strategy<Value = PixelType> {
    proptest::sample::select(PixelType::ALL.to_vec())
}

/// A region that fits `shape`, from five pairs of fractions.
fn region_of(shape: Shape, cut: [(f64, f64); 5]) -> Region {
    let mut region = shape.full();
    for (a, (from, size)) in cut.into_iter().enumerate() {
        region.start[a] = (from * shape.0[a] as f64) as usize;
        region.size[a] = 1 + (size * (shape.0[a] - region.start[a] - 1) as f64) as usize;
    }
    region
}

/// The pixels of `region`, cut out of a whole image.
fn cut_out(shape: Shape, dtype: PixelType, pixels: &[u8], region: Region) -> Vec<u8> {
    let mut out = vec![0; region.pixels() * dtype.size()];
    let mut sink = CopySink::new(vec![(region, dtype, &mut out)]);
    let block = wellread_store::Block { region: shape.full(), data: pixels, dtype };
    wellread_store::PixelSink::put(&mut sink, 0, &block).unwrap();
    out
}

/// Whole and partial reads of row 0 give `pixels`.
fn assert_reads(store: &dyn Store, shape: Shape, dtype: PixelType, pixels: &[u8], region: Region) {
    let (info, read) = read_image(store, 0).unwrap();
    assert_eq!((info.shape, info.dtype), (shape, dtype));
    assert!(read == pixels, "whole image differs");
    let (mut scratch, mut part) = (Scratch::default(), vec![]);
    read_region(store, 0, &region, &mut scratch, &mut part).unwrap();
    assert!(part == cut_out(shape, dtype, pixels, region), "region {region:?} differs");
}

fn compressions() -> impl Strategy<Value = Compression> {
    proptest::sample::select(vec![
        Compression::Default,
        Compression::None,
        Compression::Lz4,
        Compression::Zstd(5),
        Compression::Deflate(1),
    ])
}

fn cuts() -> impl Strategy<Value = [(f64, f64); 5]> {
    prop::array::uniform5((0.0..1.0, 0.0..1.0))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// What the writer writes is read back, in both versions, with every compression, chunked and sharded.
    #[test]
    fn written_images_read_back(
        dtype in dtypes(),
        shape in (1usize..3, 1usize..4, 1usize..4, 1usize..40, 1usize..40),
        chunk in proptest::option::of((1usize..3, 1usize..3, 1usize..3, 1usize..20, 1usize..20)),
        shard in proptest::option::of((1usize..3, 1usize..3, 1usize..3, 1usize..4, 1usize..4)),
        compression in compressions(),
        old in any::<bool>(),
        jobs in 1usize..3,
        cut in cuts(),
        seed in any::<u64>(),
    ) {
        let shape = Shape(shape.into());
        let chunk: Option<[usize; 5]> = chunk.map(Into::into);
        let shard = chunk.zip(shard.filter(|_| !old).map(<[usize; 5]>::from));
        let shard = shard.map(|(c, s)| std::array::from_fn(|a| c[a].min(shape.0[a]) * s[a]));
        let pixels = pattern(shape, dtype, seed);
        let dir = tempfile::tempdir().unwrap();
        let options = WriteOptions {
            compression, chunk, shard, jobs,
            variant: Some(if old { "0.4" } else { "0.5" }.to_owned()),
            ..WriteOptions::default()
        };
        let mut writer = create(dir.path().join("set"), "ome-zarr", &options).unwrap();
        let metadata = ImageMetadata::named("a");
        writer.write(&ImageView { metadata: &metadata, shape, dtype, pixels: &pixels }).unwrap();
        writer.finish().unwrap();
        let store = open_at(&dir.path().join("set"));
        prop_assert_eq!(store.name(0).unwrap(), "a");
        assert_reads(&*store, shape, dtype, &pixels, region_of(shape, cut));
    }
}

/// A group around one array, as OME-Zarr 0.4 or 0.5, with the given axes.
pub(crate) fn write_group(dir: &Path, zarr: u8, axes: &str, dataset: &str) {
    let axes: Vec<Value> = axes
        .chars()
        .map(|name| {
            let kind = match name {
                't' => "time",
                'c' => "channel",
                _ => "space",
            };
            json!({"name": name.to_string(), "type": kind})
        })
        .collect();
    let multiscales = json!([{"axes": axes, "datasets": [{"path": dataset}], "version": "0.4"}]);
    std::fs::create_dir_all(dir).unwrap();
    if zarr == 3 {
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": {
            "version": "0.5", "multiscales": multiscales}}});
        std::fs::write(dir.join("zarr.json"), group.to_string()).unwrap();
    } else {
        std::fs::write(dir.join(".zgroup"), r#"{"zarr_format": 2}"#).unwrap();
        std::fs::write(dir.join(".zattrs"), json!({"multiscales": multiscales}).to_string()).unwrap();
    }
}

/// Writes `image.zarr` with zarrs: an array of `metadata` whose chunks hold noise, one in five missing.
/// Returns the whole array as zarrs reads it, in the array's own order of axes, little-endian.
fn write_with_zarrs(dir: &Path, metadata: Value, axes: &str, pixel: usize, seed: u64) -> Vec<u8> {
    let zarr = metadata["zarr_format"].as_u64().unwrap() as u8;
    let group = dir.join("image.zarr");
    write_group(&group, zarr, axes, "s0");
    let storage = Arc::new(FilesystemStore::new(&group).unwrap());
    let metadata: ArrayMetadata = serde_json::from_value(metadata).unwrap();
    let array = Array::new_with_metadata(storage, "/s0", metadata).unwrap_or_else(|e| panic!("{e}"));
    array.store_metadata().unwrap();
    // zarrs writes v2 chunks only through v3 metadata unless told otherwise: put v2 metadata as given.
    let mut state = seed | 1;
    let grid = array.chunk_grid_shape().to_vec();
    for number in 0..grid.iter().product::<u64>() {
        let mut at = vec![0; grid.len()];
        let mut rest = number;
        for a in (0..grid.len()).rev() {
            at[a] = rest % grid[a];
            rest /= grid[a];
        }
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        if state >> 60 < 3 {
            continue;
        }
        let shape = array.chunk_shape(&at).unwrap();
        let n = shape.iter().map(|n| n.get() as usize).product::<usize>();
        let bytes = pattern(Shape::plane(1, n * pixel), PixelType::U8, state);
        array.store_chunk(&at, ArrayBytes::new_flen(bytes)).unwrap();
    }
    let all: ArrayBytes<'static> = array.retrieve_array_subset(&array.subset_all()).unwrap();
    all.into_fixed().unwrap().into_owned()
}

/// Reorders an array of `shape` with `axes` (any order) to TCZYX.
fn to_tczyx(shape: &[usize], axes: &str, pixel: usize, pixels: &[u8]) -> (Shape, Vec<u8>) {
    let order: Vec<usize> = axes.chars().map(|a| "tczyx".find(a).unwrap()).collect();
    let (mut full, mut strides, mut stride) = ([1; 5], [0; 5], 1);
    for (&axis, &n) in order.iter().zip(shape).rev() {
        full[axis] = n;
        strides[axis] = stride;
        stride *= n;
    }
    let mut out = vec![];
    let [nt, nc, nz, ny, nx] = full;
    for t in 0..nt {
        for c in 0..nc {
            for z in 0..nz {
                for y in 0..ny {
                    for x in 0..nx {
                        let i: usize = [t, c, z, y, x].iter().zip(&strides).map(|(i, s)| i * s).sum();
                        out.extend_from_slice(&pixels[i * pixel..(i + 1) * pixel]);
                    }
                }
            }
        }
    }
    (Shape(full), out)
}

fn compressors_v3(typesize: usize) -> Vec<Vec<Value>> {
    let blosc = |cname: &str, shuffle: &str| {
        vec![json!({"name": "blosc", "configuration": {
            "cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": typesize, "blocksize": 0}})]
    };
    let zstd = json!({"name": "zstd", "configuration": {"level": 3, "checksum": true}});
    let gzip = json!({"name": "gzip", "configuration": {"level": 5}});
    let crc = json!({"name": "crc32c"});
    vec![
        vec![],
        vec![crc.clone()],
        vec![zstd.clone()],
        vec![zstd.clone(), crc],
        vec![gzip.clone()],
        vec![json!({"name": "numcodecs.zlib", "configuration": {"level": 5}})],
        blosc("lz4", "shuffle"),
        blosc("lz4", "bitshuffle"),
        blosc("lz4hc", "noshuffle"),
        blosc("zstd", "bitshuffle"),
        blosc("zstd", "shuffle"),
        blosc("blosclz", "shuffle"),
        blosc("zlib", "shuffle"),
        // Only zarrs does these two.
        vec![gzip.clone(), zstd],
        vec![gzip.clone(), gzip],
    ]
}

fn axes_orders() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "yx", "xy", "zyx", "cyx", "tyx", "czyx", "zcyx", "tcyx", "yxc", "tczyx", "tzcyx", "xyzct",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    /// Zarr v3 as zarrs writes it: every codec, sharding, transpose, byte order, key encoding, axis order.
    #[test]
    fn agrees_with_zarrs_v3(
        dtype in dtypes(),
        axes in axes_orders(),
        lengths in prop::array::uniform5((0usize..3, 1usize..6, 1usize..4, 0usize..6)),
        compressor in 0usize..15,
        (transposed, inner_transposed, big, sharded, index_at_start) in any::<(bool, bool, bool, bool, bool)>(),
        (keys, cut, seed) in (0usize..3, cuts(), any::<u64>()),
    ) {
        let rank = axes.len();
        let shape: Vec<usize> = lengths[..rank].iter().map(|l| l.0 * l.1 + 1 + l.3 % l.1).collect();
        let inner: Vec<usize> = lengths[..rank].iter().map(|l| l.1).collect();
        let outer: Vec<usize> = lengths[..rank].iter().map(|l| l.1 * l.2).collect();
        // A rotation: not its own inverse for three dimensions and more.
        let rotation: Vec<usize> = (0..rank).map(|i| (i + 1) % rank).collect();
        let transpose = json!({"name": "transpose", "configuration": {"order": rotation}});
        let mut codecs = vec![];
        if (inner_transposed && sharded) || (transposed && !sharded) {
            codecs.push(transpose.clone());
        }
        let endian = if big { "big" } else { "little" };
        codecs.push(json!({"name": "bytes", "configuration": {"endian": endian}}));
        codecs.extend(compressors_v3(dtype.size())[compressor].clone());
        if sharded {
            let inner: Vec<usize> =
                if transposed { rotation.iter().map(|&i| inner[i]).collect() } else { inner.clone() };
            let shard = json!({"name": "sharding_indexed", "configuration": {
                "chunk_shape": inner, "codecs": codecs,
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                "index_location": if index_at_start { "start" } else { "end" }}});
            codecs = if transposed { vec![transpose, shard] } else { vec![shard] };
        }
        let keys = [
            json!({"name": "default", "configuration": {"separator": "/"}}),
            json!({"name": "default", "configuration": {"separator": "."}}),
            json!({"name": "v2", "configuration": {"separator": "."}}),
        ][keys].clone();
        let metadata = json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": dtype,
            "chunk_grid": {"name": "regular", "configuration": {
                "chunk_shape": if sharded { &outer } else { &inner }}},
            "chunk_key_encoding": keys, "fill_value": 7, "codecs": codecs, "attributes": {}});
        let dir = tempfile::tempdir().unwrap();
        let pixels = write_with_zarrs(dir.path(), metadata, axes, dtype.size(), seed);
        let (shape, pixels) = to_tczyx(&shape, axes, dtype.size(), &pixels);
        let store = open_at(&dir.path().join("image.zarr"));
        assert_reads(&*store, shape, dtype, &pixels, region_of(shape, cut));
    }

    /// Zarr v2 as zarrs writes it: compressors, byte order, memory order, separators.
    #[test]
    fn agrees_with_zarrs_v2(
        dtype in dtypes(),
        axes in axes_orders(),
        lengths in prop::array::uniform5((0usize..3, 1usize..6, 0usize..6)),
        compressor in 0usize..6,
        (column_major, big, dots) in any::<(bool, bool, bool)>(),
        (cut, seed) in (cuts(), any::<u64>()),
    ) {
        let lengths = &lengths[..axes.len()];
        let shape: Vec<usize> = lengths.iter().map(|l| l.0 * l.1 + 1 + l.2 % l.1).collect();
        let chunks: Vec<usize> = lengths.iter().map(|l| l.1).collect();
        let kind = match dtype {
            PixelType::U8 | PixelType::U16 | PixelType::U32 => 'u',
            PixelType::F32 | PixelType::F64 => 'f',
            _ => 'i',
        };
        let order = match dtype.size() { 1 => '|', _ if big => '>', _ => '<' };
        let compressor = [
            Value::Null,
            json!({"id": "zstd", "level": 3}),
            json!({"id": "gzip", "level": 3}),
            json!({"id": "zlib", "level": 3}),
            json!({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
            json!({"id": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 2, "blocksize": 0}),
        ][compressor].clone();
        let metadata = json!({
            "zarr_format": 2, "shape": shape, "chunks": chunks,
            "dtype": format!("{order}{kind}{}", dtype.size()),
            "fill_value": 7, "order": if column_major { "F" } else { "C" }, "filters": null,
            "dimension_separator": if dots { "." } else { "/" },
            "compressor": compressor,
        });
        let dir = tempfile::tempdir().unwrap();
        let pixels = write_with_zarrs(dir.path(), metadata, axes, dtype.size(), seed);
        let (shape, pixels) = to_tczyx(&shape, axes, dtype.size(), &pixels);
        let store = open_at(&dir.path().join("image.zarr"));
        assert_reads(&*store, shape, dtype, &pixels, region_of(shape, cut));
    }
}

/// Writes a one-chunk image group by wellread's own writer at `path` (ending in `.zarr`).
pub(crate) fn write_small(path: &Path, options: &WriteOptions) -> Vec<u8> {
    let shape = Shape::plane(20, 30);
    let pixels = pattern(shape, PixelType::U16, 5);
    let mut writer = create(path, "ome-zarr", options).unwrap_or_else(|e| panic!("{e}"));
    let metadata = ImageMetadata::named("small");
    writer.write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U16, pixels: &pixels }).unwrap();
    writer.finish().unwrap();
    pixels
}

#[test]
fn plates_wells_and_series() {
    let dir = tempfile::tempdir().unwrap();
    let plate = dir.path().join("plate.zarr");
    let group = |path: &Path, attributes: Value| {
        std::fs::create_dir_all(path).unwrap();
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {"ome": attributes}});
        std::fs::write(path.join("zarr.json"), group.to_string()).unwrap();
    };
    for field in ["A/1/0", "A/1/1", "B/2/0"] {
        std::fs::create_dir_all(plate.join(field).parent().unwrap()).unwrap();
        write_small(&dir.path().join("x.zarr"), &WriteOptions::default());
        std::fs::rename(dir.path().join("x.zarr"), plate.join(field)).unwrap();
    }
    group(&plate, json!({"plate": {"wells": [{"path": "A/1"}, {"path": "B/2"}]}}));
    group(&plate.join("A/1"), json!({"well": {"images": [{"path": "0"}, {"path": "1"}]}}));
    group(&plate.join("B/2"), json!({"well": {"images": [{"path": "0"}]}}));
    let names = |path: &Path| -> Vec<String> {
        let store = open_at(path);
        (0..store.len())
            .map(|row| {
                read_image(&*store, row).unwrap();
                store.name(row).unwrap()
            })
            .collect()
    };
    assert_eq!(names(&plate), ["A/1/0", "A/1/1", "B/2/0"]);
    assert_eq!(names(&plate.join("A/1")), ["0", "1"]);
    assert_eq!(names(&plate.join("A/1/1")), ["1"]);
    // The same two fields as bioformats2raw lays out series, without and with the list in OME.
    let series = plate.join("A/1");
    group(&series, json!({"bioformats2raw.layout": 3}));
    assert_eq!(names(&series), ["0", "1"]);
    group(&series.join("OME"), json!({"series": ["1"]}));
    assert_eq!(names(&series), ["1"]);
    group(&series.join("OME"), json!({"series": ["../../B/2/0"]}));
    assert!(open(&series, &OpenOptions::default()).err().unwrap().to_string().contains("leaves its group"));
}

#[test]
fn metadata_survives() {
    let size = |value, unit: &str| Some(PhysicalSize { value, unit: unit.into() });
    let metadata = ImageMetadata {
        id: "Image:3".into(),
        name: "field".into(),
        channels: vec![
            Channel {
                id: "c0".into(),
                name: "DAPI".into(),
                emission_um: Some(0.461),
                color_rgba: Some(0x0000_ffff),
                ..Channel::default()
            },
            Channel { id: "c1".into(), name: "GFP".into(), ..Channel::default() },
        ],
        physical_size_x: size(0.65, "µm"),
        physical_size_y: size(650.0, "nm"),
        physical_size_z: None,
        acquired: Some("2026-11-21T05:38:56".into()),
    };
    let shape = Shape([1, 2, 1, 3, 4]);
    let pixels = vec![9; 24];
    for version in ["0.4", "0.5"] {
        let dir = tempfile::tempdir().unwrap();
        let options = WriteOptions { variant: Some(version.into()), ..WriteOptions::default() };
        let mut writer = create(dir.path().join("set"), "ome-zarr", &options).unwrap();
        writer
            .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels })
            .unwrap();
        writer.finish().unwrap();
        let path = dir.path().join("set/field.zarr");
        let store = open_at(&path);
        assert_eq!(store.metadata(0).unwrap(), metadata);
        // Without wellread's own attribute, what omero and the axes say remains.
        let file = path.join(if version == "0.5" { "zarr.json" } else { ".zattrs" });
        let text = std::fs::read_to_string(&file).unwrap().replace("\"wellread\"", "\"other\"");
        std::fs::write(&file, text).unwrap();
        let plain = store.metadata(0).unwrap();
        assert_eq!(plain.channels.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["DAPI", "GFP"]);
        assert_eq!(plain.channels[0].color_rgba, Some(0x0000_ffff));
        assert_eq!((plain.physical_size_x, plain.physical_size_z), (metadata.physical_size_x.clone(), None));
    }
}

#[test]
fn rows_of_a_folder_are_sorted_and_read_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let shape = Shape([1, 2, 1, 5, 7]);
    for jobs in [1, 3] {
        let set = dir.path().join(format!("set-{jobs}"));
        let mut writer = create(&set, "ome-zarr", &WriteOptions { jobs, ..WriteOptions::default() }).unwrap();
        for (i, name) in ["b", "a", "d/x", "c.ome"].iter().enumerate() {
            let metadata = ImageMetadata::named(*name);
            let pixels = pattern(shape, PixelType::F32, i as u64);
            let image = ImageView { metadata: &metadata, shape, dtype: PixelType::F32, pixels: &pixels };
            writer.write(&image).unwrap();
        }
        writer.finish().unwrap();
        let store = open_at(&set);
        let names: Vec<_> = (0..4).map(|row| store.name(row).unwrap()).collect();
        assert_eq!(names, ["a", "b", "c", "d_x"]);
        let order = [3, 0, 2, 1];
        let requests = order.map(|row| Request { row, region: shape.full() });
        let mut outs = vec![vec![0; shape.pixels() * 4]; 4];
        let targets = outs.iter_mut().map(|o| (shape.full(), PixelType::F32, o.as_mut_slice())).collect();
        store.read(&requests, &mut Scratch::default(), &mut CopySink::new(targets)).unwrap();
        for (out, written) in outs.iter().zip([2, 1, 3, 0]) {
            assert!(*out == pattern(shape, PixelType::F32, written));
        }
        // 4 images of a group file, an array file and two chunks each.
        assert_eq!(store.files().unwrap().len(), 16);
    }
}

#[test]
fn writer_refuses_what_it_cannot_do() {
    let dir = tempfile::tempdir().unwrap();
    let refuse = |options: WriteOptions, says: &str| {
        let error = create(dir.path().join("x"), "ome-zarr", &options).err().unwrap().to_string();
        assert!(error.contains(says), "{error}");
        assert!(!dir.path().join("x").exists());
    };
    refuse(WriteOptions { compression: Compression::Lzw, ..WriteOptions::default() }, "zstd");
    refuse(WriteOptions { variant: Some("0.3".into()), ..WriteOptions::default() }, "0.4 and 0.5");
    refuse(WriteOptions { chunk: Some([1, 1, 1, 0, 1]), ..WriteOptions::default() }, "empty");
    let shard = Some([1, 1, 1, 64, 64]);
    refuse(WriteOptions { shard, variant: Some("0.4".into()), ..WriteOptions::default() }, "no shards");
    let one = dir.path().join("one.zarr");
    let mut writer = create(&one, "ome-zarr", &WriteOptions::default()).unwrap();
    let metadata = ImageMetadata::named("a");
    let shape = Shape::plane(2, 2);
    let image = ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &[1, 2, 3, 4] };
    writer.write(&ImageView { pixels: &[1], ..image }).unwrap_err();
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing half-written is left");
    let mut writer = create(&one, "ome-zarr", &WriteOptions::default()).unwrap();
    writer.write(&image).unwrap();
    assert!(writer.write(&image).unwrap_err().to_string().contains("holds one image"));
    writer.finish().unwrap();
    assert_eq!(open_at(&one).name(0).unwrap(), "one");
}
