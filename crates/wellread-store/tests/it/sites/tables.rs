//! Tables of files (`load_data.csv`), and the companion of OME-TIFF.

use super::{
    channels, failure, image, layout, names, numbers, options, pixels, text, tiff, with_missing, write,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use std::path::Path;
use wellread_store::sites::unused_table;
use wellread_store::{Missing, OpenOptions, open, read_image};

fn table(folder: &Path, paths: &str) {
    let text = format!(
        "Metadata_Plate,Metadata_Well,Metadata_Site,FileName_OrigDNA,PathName_OrigDNA,FileName_OrigER,PathName_OrigER,\
         FileName_IllumDNA\r\n\
         BR1,B02,1,b-ch1.tif,{paths},b-ch2.tif,{paths},illum.npy\r\n\
         BR1,A01,2,a-ch1.tif,{paths},\"a-ch2.tif\",{paths},illum.npy\r\n"
    );
    std::fs::write(folder.join("load_data.csv"), text).unwrap();
}

#[test]
fn a_table_says_which_file_is_which_channel() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("load_data.csv");
    write(&dir.path().join("images"), &["a-ch1.tif", "a-ch2.tif", "b-ch1.tif", "b-ch2.tif"]);
    table(dir.path(), "images");
    let store = open(&path, &options()).unwrap();
    assert_eq!(
        (names(&*store), channels(&*store)),
        (vec!["b".to_owned(), "a".to_owned()], vec!["DNA".to_owned(), "ER".to_owned()])
    );
    assert_eq!(image(&*store, 0), ([1, 2, 1], pixels(&[2, 3])));
    assert_eq!(image(&*store, 1), ([1, 2, 1], pixels(&[0, 1])));
    assert_eq!(text(&*store, "Metadata_Well"), ["B02", "A01"]);
    assert_eq!(numbers(&*store, "Metadata_Site"), [1, 2]);
    assert_eq!(text(&*store, "FileName_IllumDNA"), ["illum.npy", "illum.npy"]);
    assert_eq!(store.path(), path);
    // The folder is opened by the table in it, unless single files are asked for.
    let folder = open(dir.path(), &options()).unwrap();
    assert_eq!(unused_table(&*folder, &options()), None);
    assert_eq!((names(&*folder), image(&*folder, 0)), (names(&*store), ([1, 2, 1], pixels(&[2, 3]))));
    let unnamed = || {
        let summary = open(dir.path(), &options()).unwrap().hints().sites.unwrap().summary();
        (summary.unnamed, summary.unnamed_in_words())
    };
    assert_eq!(unnamed(), (0, None));
    // The error names what other columns name, or says that no column names it.
    write(dir.path(), &["illum.tif"]);
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, whole.replace("illum.npy", "illum.tif")).unwrap();
    assert_eq!(unnamed(), (0, None));
    write(&dir.path().join("images"), &["c-ch1.tif"]);
    let said = |what: &str| Some(format!("{what} not in its load_data.csv: images/c-ch1.tif"));
    assert_eq!(unnamed(), (1, said("1 image of the folder is")));
    write(&dir.path().join("images/deep"), &["1.tif", "2.tif", "3.tif"]);
    let (count, sentence) = unnamed();
    assert_eq!(count, 4);
    let more = ", images/deep/1.tif, images/deep/2.tif …";
    assert_eq!(sentence, said("4 images of the folder are").map(|one| one + more));
    let by_table = open(&path, &options()).unwrap();
    assert_eq!(by_table.hints().sites.unwrap().summary().unnamed, 0, "the table was asked for");
    std::fs::remove_dir_all(dir.path().join("images/deep")).unwrap();
    std::fs::remove_file(dir.path().join("images/c-ch1.tif")).unwrap();
    std::fs::remove_file(dir.path().join("illum.tif")).unwrap();
    assert_eq!(open(dir.path(), &layout("files")).unwrap().len(), 4);
    // Another machine's.
    table(dir.path(), r"C:\data\plate");
    let error = failure(&path, &options());
    for part in
        ["load_data.csv: row 0: ", r": C:\data\plate\b-ch1.tif is not there, nor", ": path_map FROM=TO"]
    {
        assert!(error.contains(part), "{error}");
    }
    // The folder opens without the table then, which is said.
    let folder = open(dir.path(), &options()).unwrap();
    let why = unused_table(&*folder, &options()).unwrap();
    assert!(
        why.contains(r"Its first is C:\data\plate\b-ch1.tif (say where they lie: path_map FROM=TO"),
        "{why}"
    );
    assert_eq!((folder.len(), unused_table(&*folder, &layout("files"))), (4, None));
    let relative = vec![(r"C:\data\plate".to_owned(), "elsewhere/images".to_owned())];
    let error = failure(&path, &OpenOptions { path_map: relative, ..options() });
    let why = "the TO of path_map begins at the folder of the table unless it is absolute";
    assert!(error.contains("elsewhere/images") && error.contains(why), "{error}");
    let map = vec![(r"C:\data\plate".to_owned(), dir.path().join("images").display().to_string())];
    let store = open(&path, &OpenOptions { path_map: map, ..options() }).unwrap();
    assert_eq!(image(&*store, 1), ([1, 2, 1], pixels(&[0, 1])));
    assert!(failure(&path, &layout("harmony")).contains("a table of files"));
}

#[test]
fn cells_without_a_file_are_missing() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["a1.tif", "a2.tif", "b1.tif"]);
    let path = dir.path().join("set.csv");
    std::fs::write(&path, "FileName_OrigDNA,FileName_OrigER,Metadata_Well\na1.tif,a2.tif,A01\nb1.tif,,A02\n")
        .unwrap();
    let store = open(&path, &options()).unwrap();
    assert_eq!(read_image(&*store, 1).unwrap_err().cause(), format!("{} has no ER", store.name(1).unwrap()));
    let store = open(&path, &with_missing(Missing::Zero)).unwrap();
    assert_eq!(image(&*store, 1), ([1, 2, 1], [pixels(&[2]), vec![0; 12]].concat()));
    std::fs::write(&path, "FileName_OrigDNA\na1.tif,x\n").unwrap();
    assert!(failure(&path, &options()).contains("line 2: 2 fields, where the first line has 1"));
    std::fs::write(&path, "FileName_OrigDNA\n").unwrap();
    assert!(failure(&path, &options()).contains("no row"));
}

#[test]
fn files_that_are_named_and_not_there_are_missing() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["a1.tif", "a2.tif", "b1.tif"]);
    let path = dir.path().join("set.csv");
    let header = "FileName_OrigDNA,FileName_OrigER,Metadata_Well\n";
    std::fs::write(&path, format!("{header}a1.tif,a2.tif,A01\nb1.tif,b2.tif,A02\nc1.tif,c2.tif,A03\n"))
        .unwrap();
    let store = open(&path, &options()).unwrap();
    let summary = store.hints().sites.unwrap().summary();
    assert_eq!((store.len(), summary.incomplete), (3, 2));
    assert_eq!(store.row_info(2).unwrap(), store.row_info(0).unwrap());
    assert!(read_image(&*store, 1).unwrap_err().cause().ends_with("has no ER"));
    assert!(read_image(&*store, 2).unwrap_err().cause().ends_with("has no DNA, ER"));
    let store = open(&path, &with_missing(Missing::Skip)).unwrap();
    assert_eq!((store.len(), text(&*store, "Metadata_Well")), (1, vec!["A01".to_owned()]));
    let store = open(&path, &with_missing(Missing::Zero)).unwrap();
    assert_eq!(image(&*store, 1), ([1, 2, 1], [pixels(&[2]), vec![0; 12]].concat()));
    assert_eq!(image(&*store, 2), ([1, 2, 1], vec![0; 24]));
}

#[test]
fn rows_of_the_same_files_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["a1.tif", "a2.tif", "b1.tif"]);
    let path = dir.path().join("load_data.csv");
    let header = "FileName_OrigDNA,FileName_OrigER,Metadata_Well";
    let rows = "a1.tif,a2.tif,A01\nb1.tif,a2.tif,A02\n";
    std::fs::write(&path, format!("{header}\n{rows}a1.tif,a2.tif,A03\n")).unwrap();
    // The folder does not open without its table in silence.
    for opened in [path.as_path(), dir.path()] {
        let error = failure(opened, &options());
        for part in ["load_data.csv: row 2: ", "rows 0 and 2 name the same files", "leave one of them out"] {
            assert!(error.contains(part), "{error}");
        }
    }
    std::fs::write(&path, format!("{header},Frame_OrigDNA\na1.tif,a2.tif,A01,0\na1.tif,a2.tif,A01,1\n"))
        .unwrap();
    let error = failure(&path, &options());
    assert!(error.contains("reads whole files and no \"Frame_OrigDNA\""), "{error}");
    std::fs::write(&path, format!("{header}\n{rows}")).unwrap();
    assert_eq!(open(&path, &options()).unwrap().len(), 2);
}

/// CellProfiler takes pages of one file as channels, by `Frame_…`: whole files would be the same pixels in each.
#[test]
fn channels_that_are_parts_of_one_file_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["a.tif", "b.tif", "c.tif"]);
    let path = dir.path().join("set.csv");
    let header = "FileName_OrigDNA,FileName_OrigER,Frame_OrigDNA,Frame_OrigER";
    std::fs::write(&path, format!("{header}\na.tif,b.tif,0,1\nc.tif,c.tif,0,1\n")).unwrap();
    let error = failure(&path, &options());
    for part in ["row 1", "two channels are parts of one file", "reads whole files and no \"Frame_OrigER\""] {
        assert!(error.contains(part), "{error}");
    }
    // CellProfiler writes the columns for every file.
    for rows in ["a.tif,b.tif,0,0", "a.tif,a.tif,0,0", "a.tif,a.tif,,0"] {
        std::fs::write(&path, format!("{header}\n{rows}\n")).unwrap();
        assert_eq!(open(&path, &options()).unwrap().len(), 1, "{rows}");
    }
}

#[test]
fn metadata_of_numbers_are_numbers() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["a1.tif", "b1.tif"]);
    let path = dir.path().join("set.csv");
    let header = "FileName_OrigDNA,Metadata_Plate,Metadata_Well,Metadata_Dose,Metadata_Batch\n";
    std::fs::write(&path, format!("{header}a1.tif,101,A01,0,01\nb1.tif,101,A02,3,02\n")).unwrap();
    let store = open(&path, &options()).unwrap();
    assert_eq!(numbers(&*store, "Metadata_Dose"), [0, 3]);
    assert_eq!(text(&*store, "Metadata_Batch"), ["01", "02"]);
    assert_eq!(text(&*store, "Metadata_Plate"), ["101", "101"]);
}

#[test]
fn metadata_have_the_types_of_a_table_of_cells() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["a1.tif", "b1.tif"]);
    let path = dir.path().join("set.csv");
    let header = "FileName_OrigDNA;Metadata_Object;Metadata_Dose;Metadata_Control;Metadata_Note";
    let [one, other] = [12_345_678_901_234_567_890, 12_345_678_901_234_567_891u64];
    std::fs::write(&path, format!("{header}\na1.tif;{one};0,5;True;\nb1.tif;{other};2;False;NA\n")).unwrap();
    let column = |name: &str| {
        let store = open(&path, &options()).unwrap();
        let table = store.hints().features(&[format!("Metadata_{name}")]).unwrap().unwrap();
        ArrayRef::clone(table.column(0))
    };
    // As floats, both were the same.
    assert_eq!(column("Object").as_primitive::<UInt64Type>().values(), &[one, other]);
    assert_eq!(column("Dose").as_primitive::<Float64Type>().values(), &[0.5, 2.0]);
    let control: Vec<_> = column("Control").as_boolean().iter().collect();
    assert_eq!(control, [Some(true), Some(false)]);
    assert_eq!(column("Note").as_string::<i32>().null_count(), 2);
    // A table that has points in numbers has commas for something else.
    std::fs::write(&path, "FileName_OrigDNA;Metadata_Dose;Other\na1.tif;0,5;0.5\nb1.tif;2;1\n").unwrap();
    assert_eq!(column("Dose").as_string::<i32>().value(0), "0,5");
}

#[test]
fn identifiers_stay_text() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["a1.tif", "b1.tif"]);
    let path = dir.path().join("set.csv");
    let values = |name: &str, values: [&str; 2]| {
        let [one, other] = values;
        std::fs::write(&path, format!("FileName_OrigDNA,{name}\na1.tif,{one}\nb1.tif,{other}\n")).unwrap();
        text(&*open(&path, &options()).unwrap(), name)
    };
    // Barcodes are text whatever their values: those of the next plate may have letters.
    for name in ["Metadata_Plate", "Metadata_Barcode", "Metadata_Assay_Plate_Barcode"] {
        for pair in
            [["0012", "0013"], ["12", "13"], ["12345678901234567890", "2"], ["0012", "BR13"], ["1E5", "2E5"]]
        {
            assert_eq!(values(name, pair), pair, "{name}");
        }
    }
    // Others are text where a number would lose something: zeros in front, or digits.
    for pair in [
        ["0012", "0013"],
        ["0012", "13"],
        ["+012", "13"],
        ["0012E4", "13"],
        ["A12", "0013"],
        ["123456789012345678901234567890", "2"],
    ] {
        assert_eq!(values("Metadata_Batch", pair), pair);
    }
}

#[test]
fn paths_of_illumination_are_mapped_as_well() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["a1.tif", "b1.tif"]);
    let path = dir.path().join("set.csv");
    let header = "FileName_OrigDNA,PathName_IllumDNA,FileName_IllumDNA\n";
    std::fs::write(&path, format!("{header}a1.tif,D:\\il\\P1,dna.npy\nb1.tif,E:\\il,dna.npy\n")).unwrap();
    let mapped = OpenOptions { path_map: vec![(r"D:\il".to_owned(), "/fields".to_owned())], ..options() };
    let store = open(&path, &mapped).unwrap();
    assert_eq!(text(&*store, "PathName_IllumDNA"), ["/fields/P1", r"E:\il"]);
    assert_eq!(text(&*store, "FileName_IllumDNA"), ["dna.npy", "dna.npy"]);
    // A map that fits nothing is named.
    std::fs::write(&path, "FileName_OrigDNA,PathName_OrigDNA\nx.tif,/there\n").unwrap();
    let error = failure(&path, &mapped);
    assert!(error.contains(r"begins as path_map D:\il=/fields says"), "{error}");
}

#[test]
fn a_companion_stands_for_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let only = r#"<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><BinaryOnly MetadataFile="set.companion.ome" UUID="urn:uuid:00000000-0000-0000-0000-000000000000"/></OME>"#;
    for (i, name) in ["x_c0.tif", "x_c1.tif", "other.tif"].iter().enumerate() {
        let description = if *name == "other.tif" { "" } else { only };
        std::fs::write(dir.path().join(name), tiff(100 * i as u16, super::SIZE, description)).unwrap();
    }
    let data = |c: usize| {
        format!(
            r#"<TiffData FirstC="{c}" IFD="0" PlaneCount="1"><UUID FileName="x_c{c}.tif">urn:uuid:00000000-0000-0000-0000-00000000000{c}</UUID></TiffData>"#
        )
    };
    let xml = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:00000000-0000-0000-0000-000000000000"><Image ID="Image:0" Name="x"><Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint16" SizeX="3" SizeY="2" SizeZ="1" SizeC="2" SizeT="1"><Channel ID="Channel:0:0" Name="DNA" SamplesPerPixel="1"/><Channel ID="Channel:0:1" Name="ER" SamplesPerPixel="1"/>{}{}</Pixels></Image></OME>"#,
        data(0),
        data(1)
    );
    let path = dir.path().join("set.companion.ome");
    std::fs::write(&path, xml).unwrap();
    let store = open(&path, &options()).unwrap();
    assert_eq!((store.len(), channels(&*store)), (1, vec!["DNA".to_owned(), "ER".to_owned()]));
    assert_eq!(image(&*store, 0), ([1, 2, 1], pixels(&[0, 1])));
    // The folder by the name of its layout: without the file that the companion does not name.
    let folder = open(dir.path(), &layout("ome-companion")).unwrap();
    assert_eq!((folder.len(), image(&*folder, 0)), (1, ([1, 2, 1], pixels(&[0, 1]))));
    let second = dir.path().join("other.companion.ome");
    std::fs::copy(&path, &second).unwrap();
    let error = failure(dir.path(), &layout("ome-companion"));
    assert!(error.contains("give the path of the file that ends in .companion.ome"), "{error}");
    std::fs::remove_file(second).unwrap();
    std::fs::remove_file(dir.path().join("x_c1.tif")).unwrap();
    for missing in [Missing::Error, Missing::Skip, Missing::Zero] {
        let error = failure(&path, &with_missing(missing));
        assert!(error.contains("set.companion.ome: 1 image of 1 lacks files"), "{error}");
        assert!(error.contains(": x has no x_c1.tif (hint: put the files beside it"), "{error}");
    }
    // Another image that is whole.
    let xml = std::fs::read_to_string(&path).unwrap();
    let (start, end) = (xml.find("<Image ").unwrap(), xml.find("</OME>").unwrap());
    let second = xml[start..end]
        .replace("Name=\"x\"", "Name=\"y\"")
        .replace("Image:0", "Image:1")
        .replace("Pixels:0", "Pixels:1")
        .replace("Channel:0:", "Channel:1:")
        .replace("x_c", "y_c")
        .replace("uuid:0", "uuid:1");
    std::fs::write(&path, format!("{}{second}</OME>", &xml[..end])).unwrap();
    for (i, name) in ["y_c0.tif", "y_c1.tif"].iter().enumerate() {
        std::fs::write(dir.path().join(name), tiff(200 + 100 * i as u16, super::SIZE, only)).unwrap();
    }
    let error = failure(&path, &options());
    assert!(error.contains("1 image of 2 lacks files") && error.contains("missing skip leaves"), "{error}");
    let whole = open(&path, &with_missing(Missing::Skip)).unwrap();
    assert_eq!((whole.len(), names(&*whole)), (1, vec!["x_c0:y".to_owned()]));
    assert_eq!(image(&*whole, 0), ([1, 2, 1], pixels(&[2, 3])));
    assert_eq!(whole.hints().missing_parts, ["1 image of 2 lacks files: x has no x_c1.tif (left out)"]);
}

/// A companion of three times, in a file each.
fn companion_of_times(folder: &Path) -> std::path::PathBuf {
    let block = |t: usize| {
        format!(
            r#"<TiffData FirstT="{t}" IFD="0" PlaneCount="1"><UUID FileName="t{t}.tif">urn:uuid:00000000-0000-0000-0000-00000000000{t}</UUID></TiffData>"#
        )
    };
    // The second time comes first: the XML places planes, not the names.
    let blocks = [1, 0, 2].map(block).concat();
    let xml = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0" Name="A"><Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint16" SizeX="3" SizeY="2" SizeZ="1" SizeC="1" SizeT="3"><Channel ID="Channel:0:0" Name="DNA" SamplesPerPixel="1"/>{blocks}</Pixels></Image></OME>"#
    );
    let path = folder.join("x.companion.ome");
    std::fs::write(&path, xml).unwrap();
    path
}

#[test]
fn a_companion_describes_files_that_do_not_say_whose_they_are() {
    let dir = tempfile::tempdir().unwrap();
    for t in 0..3u16 {
        std::fs::write(dir.path().join(format!("t{t}.tif")), tiff(100 * t, super::SIZE, "")).unwrap();
    }
    let path = companion_of_times(dir.path());
    for opened in [path.as_path(), dir.path()] {
        let store = open(opened, &options()).unwrap();
        assert_eq!((store.len(), channels(&*store)), (1, vec!["DNA".to_owned()]), "{}", opened.display());
        assert_eq!(image(&*store, 0), ([3, 1, 1], pixels(&[0, 1, 2])));
    }
    // A file that it does not name is an image of its own; a file by itself is its content.
    std::fs::write(dir.path().join("u.tif"), tiff(300, super::SIZE, "")).unwrap();
    let store = open(dir.path(), &options()).unwrap();
    assert_eq!((image(&*store, 0).0, image(&*store, 1)), ([3, 1, 1], ([1, 1, 1], pixels(&[3]))));
    let single = open(dir.path().join("t1.tif"), &options()).unwrap();
    assert_eq!(image(&*single, 0), ([1, 1, 1], pixels(&[1])));
    // As files that point to it are checked: pages of another size are an error.
    let xml = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, xml.replace("SizeX=\"3\"", "SizeX=\"4\"")).unwrap();
    let error = read_image(&*open(dir.path(), &options()).unwrap(), 0).unwrap_err().to_string();
    assert!(error.contains("t0.tif") && error.contains("declares 4 x 2"), "{error}");
    std::fs::write(&path, xml.replace("SizeX", "SizeOfX")).unwrap();
    let error = failure(dir.path(), &options());
    assert!(error.contains("x.companion.ome") && error.contains("move it elsewhere"), "{error}");
}

#[test]
fn a_folder_with_nothing_but_a_table_says_to_give_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let (images, tables) = (dir.path().join("images"), dir.path().join("tables"));
    write(&images, &["a-ch1.tif", "a-ch2.tif", "b-ch1.tif", "b-ch2.tif"]);
    std::fs::create_dir(&tables).unwrap();
    table(&tables, images.to_str().unwrap());
    let error = failure(&tables, &options());
    assert!(error.contains("give that file itself"), "{error}");
    assert_eq!(open(tables.join("load_data.csv"), &options()).unwrap().len(), 2);
    // By the name of its layout the folder is its table, wherever the files lie.
    let by_name = open(&tables, &layout("cellprofiler")).unwrap();
    assert_eq!(names(&*by_name), ["b", "a"]);
    assert_eq!(image(&*by_name, 0), ([1, 2, 1], pixels(&[2, 3])));
    assert_eq!(by_name.hints().sites.unwrap().summary().layout, "cellprofiler");
    // Another machine's needs a map of paths.
    table(&tables, r"C:\data\plate");
    let error = failure(&tables, &layout("cellprofiler"));
    assert!(error.contains(r"C:\data\plate\b-ch1.tif is not there"), "{error}");
    assert!(error.contains("path_map FROM=TO"), "{error}");
    let path_map = vec![(r"C:\data\plate".to_owned(), images.display().to_string())];
    let mapped = open(&tables, &OpenOptions { path_map, ..layout("cellprofiler") }).unwrap();
    assert_eq!(image(&*mapped, 1), ([1, 2, 1], pixels(&[0, 1])));
    // A folder that has none says so; its images are not opened without one.
    let error = failure(&images, &layout("cellprofiler"));
    assert!(error.contains("cellprofiler: needs a folder with a load_data.csv"), "{error}");
}
