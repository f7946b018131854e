//! Agreement with zarrs: arrays of every codec, layout, byte order and order of axes.

use super::{assert_reads, cuts, dtypes, open_at, pattern, region_of, write_group};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use wellread_image::{PixelType, Shape};
use zarrs::array::{Array, ArrayBytes, ArrayMetadata};
use zarrs::filesystem::FilesystemStore;

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
