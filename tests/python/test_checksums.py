"""The checksums that wellread writes: the reference libraries read what has them, without a warning, and find damage
by those that their formats know."""

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tifffile
import zarr

CHECKSUMS = 65301


@pytest.fixture(scope="module")
def source(wellread, tmp_path_factory):
    folder = tmp_path_factory.mktemp("checksums")
    size = ("--images", 3, "--size", "40x56", "--channels", 2)
    wellread("generate", folder, *size, "--formats", "tiff")
    return folder / "tiff"


def pixels(folder):
    return {path.name.split(".")[0]: tifffile.imread(path) for path in folder.iterdir()}


@pytest.mark.parametrize("variant", ["ome", "plain"])
@pytest.mark.parametrize("compression", ["none", "lzw", "packbits", "deflate", "zstd"])
def test_tifffile_reads_tiff_with_checksums_without_a_word(wellread, source, tmp_path, caplog, compression, variant):
    target = tmp_path / "tiff"
    written = ("--compression", compression, "--variant", variant, "--chunk", "1,1,1,16,32")
    wellread("convert", source, target, "--format", "tiff", *written)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pixels(target)
        for name, image in pixels(source).items():
            np.testing.assert_array_equal(np.squeeze(found[name]), np.squeeze(image))
        for path in target.iterdir():
            with tifffile.TiffFile(path) as tiff:
                for page in tiff.pages:
                    values = page.tags[CHECKSUMS].value
                    # Its mark, two values of the directory, one of each tile.
                    assert len(values) == 3 + len(page.dataoffsets)
    assert not caplog.records
    wellread("convert", source, tmp_path / "without", "--format", "tiff", *written, "--no-checksums")
    for path in (tmp_path / "without").iterdir():
        with tifffile.TiffFile(path) as tiff:
            assert all(CHECKSUMS not in page.tags for page in tiff.pages)


def test_strip_checksums_are_those_of_zlib(wellread, source, tmp_path):
    import zlib

    wellread("convert", source, tmp_path / "tiff", "--format", "tiff", "--chunk", "1,1,1,16,32")
    for path in (tmp_path / "tiff").iterdir():
        whole = path.read_bytes()
        with tifffile.TiffFile(path) as tiff:
            for page in tiff.pages:
                strips = zip(page.dataoffsets, page.databytecounts, strict=True)
                sums = tuple(zlib.crc32(whole[at : at + n]) for at, n in strips)
                _, of_directory, length, *of_strips = page.tags[CHECKSUMS].value
                assert sums == tuple(of_strips)
                directory = bytearray(whole[page.offset : page.offset + length])
                at = page.tags[CHECKSUMS].valueoffset + 4 - page.offset
                directory[at : at + 4] = bytes(4)
                assert zlib.crc32(directory) == of_directory


def with_damaged_pages(path, bad):
    """Writes a file once for each large column of its first row group, with the column's last byte damaged."""
    chunk = pq.ParquetFile(path).metadata.row_group(0)
    for column in range(chunk.num_columns):
        meta = chunk.column(column)
        if meta.total_compressed_size < 80:
            continue
        whole = bytearray(path.read_bytes())
        start = meta.dictionary_page_offset or meta.data_page_offset
        whole[start + meta.total_compressed_size - 1] ^= 1
        bad.write_bytes(whole)
        yield column


@pytest.mark.parametrize("tune", ["random", "scan", "reference"])
@pytest.mark.parametrize("compression", ["none", "lz4", "snappy", "deflate", "zstd"])
def test_pyarrow_checks_our_pages(wellread, source, tmp_path, tune, compression):
    path, without, bad = (tmp_path / f"{name}.parquet" for name in ("a", "b", "bad"))
    written = ("--tune", tune, "--compression", compression)
    wellread("convert", source, path, *written)
    good = pq.ParquetFile(path, page_checksum_verification=True).read()
    damaged = 0
    for _ in with_damaged_pages(path, bad):
        with pytest.raises(OSError, match="CRC"):
            pq.ParquetFile(bad, page_checksum_verification=True).read()
        damaged += 1
    assert damaged >= 3
    wellread("convert", source, without, *written, "--no-checksums")
    assert pq.read_table(without).equals(good)
    # The same damage is an error of its codec at most: there is no checksum to compare.
    said = []
    for column in with_damaged_pages(without, bad):
        try:
            pq.ParquetFile(bad, page_checksum_verification=True).read()
            said.append((column, ""))
        except Exception as error:
            said.append((column, str(error)))
    # Pages are shorter without checksums: fewer columns are large.
    assert said
    assert not [(column, error) for column, error in said if "CRC" in error]


def test_a_table_that_another_library_writes_anew_is_read(wellread, source, tmp_path):
    wellread("convert", source, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    assert isinstance(table, pa.Table)
    pq.write_table(table, tmp_path / "b.parquet")
    sums = [[s["sha256"] for s in wellread("checksum", tmp_path / name)] for name in ("a.parquet", "b.parquet")]
    assert sums[0] == sums[1]


@pytest.mark.parametrize("shard", [None, "1,1,1,64,64"])
@pytest.mark.parametrize("compression", ["none", "lz4", "deflate", "zstd"])
def test_zarr_checks_our_chunks(wellread, source, tmp_path, compression, shard):
    target = tmp_path / "zarr"
    written = ["--format", "ome-zarr", "--compression", compression, "--chunk", "1,1,1,16,32"]
    wellread("convert", source, target, *written, *(["--shard", shard] if shard else []))
    image = sorted(target.iterdir())[0]
    good = zarr.open_array(str(image / "0"), mode="r")[:]
    np.testing.assert_array_equal(np.squeeze(good), np.squeeze(pixels(source)[image.name.split(".")[0]]))
    chunk = next(path for path in sorted((image / "0" / "c").rglob("*")) if path.is_file())
    whole = bytearray(chunk.read_bytes())
    whole[20] ^= 1
    chunk.write_bytes(whole)
    # Zstandard and gzip say it in their own words; the others have a codec of their own for it.
    told = "(?i)crc|checksum" if compression in ("none", "lz4") else "."
    with pytest.raises(Exception, match=told):
        zarr.open_array(str(image / "0"), mode="r")[:]
    error = wellread("checksum", target, code=1)
    assert str(image.name) in error
