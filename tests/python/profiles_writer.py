"""Writes tables of single cells by the libraries of the field, in a Python that has them: profiles_writer.py FOLDER.

They need an older pandas than the other tests have. FOLDER has what CellProfiler exports: ``csv`` (Cells.csv,
Nuclei.csv, Cytoplasm.csv, Image.csv) and ``experiment.sqlite`` (Per_Cells …). ``runs`` has a folder like ``csv`` for
each run. Older versions of cytominer-database wrote ``backend.sqlite`` so.
"""

import sys
from pathlib import Path

import cytotable
import duckdb
import duckdb_extension_httpfs
import duckdb_extension_sqlite_scanner
from cytominer_database.ingest import seed
from parsl.config import Config
from parsl.executors import ThreadPoolExecutor
from pycytominer.cyto_utils.cells import SingleCells


def write_by_cytotable(folder, source, kind, name):
    # Threads: its own choice starts processes and listens on ports.
    config = Config(executors=[ThreadPoolExecutor(max_threads=1)], run_dir=str(folder / "parsl"))
    cytotable.convert(
        source_path=str(folder / source),
        source_datatype=kind,
        dest_path=str(folder / name),
        dest_datatype="parquet",
        preset=f"cellprofiler_{kind}",
        parsl_config=config,
    )


def write_by_pycytominer(folder):
    cells = SingleCells(
        sql_file=f"sqlite:///{folder / 'backend.sqlite'}",
        strata=["Image_Metadata_Plate", "Image_Metadata_Well"],
        image_cols=["TableNumber", "ImageNumber", "Image_Metadata_Site"],
        fields_of_view_feature="Image_Metadata_Site",
        object_feature="ObjectNumber",
    )
    cells.merge_single_cells().to_parquet(folder / "pycytominer.parquet")
    cells.merge_single_cells(sc_output_file=str(folder / "pycytominer.csv"))


def write_by_cytominer_database(folder):
    config = folder / "ingest.ini"
    config.write_text("[filenames]\nimage = Image.csv\nexperiment = Experiment.csv\n")
    seed(str(folder / "runs"), f"sqlite:///{folder / 'cytominer-database.sqlite'}", str(config))


def main(folder):
    # CytoTable has DuckDB load these, which it would else download.
    for package in (duckdb_extension_sqlite_scanner, duckdb_extension_httpfs):
        file = next(Path(package.__file__).parent.rglob("*.duckdb_extension"))
        duckdb.execute(f"INSTALL '{file}'")
    write_by_cytotable(folder, "csv", "csv", "cytotable-csv.parquet")
    write_by_cytotable(folder, "experiment.sqlite", "sqlite", "cytotable-sqlite.parquet")
    write_by_pycytominer(folder)
    write_by_cytominer_database(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
