//! Layouts by name, recognised and asked for; patterns.

use super::{
    SIZE, channels, failure, image, layout, names, numbers, options, pattern, pixels, text, tiff, tiff_of,
    write,
};
use wellread_image::Region;
use wellread_store::{CopySink, OpenOptions, Request, Scratch, Unmatched, open, sites::unmatched_names};

/// Two channels of three sites, out of order.
const HARMONY: [&str; 6] = [
    "r02c01f01p01-ch1sk1fk1fl1.tiff",
    "r01c10f02p01-ch1sk1fk1fl1.tiff",
    "r01c10f01p01-ch1sk1fk1fl1.tiff",
    "r01c10f01p01-ch5sk1fk1fl1.tiff",
    "r01c10f02p01-ch5sk1fk1fl1.tiff",
    "r02c01f01p01-ch5sk1fk1fl1.tiff",
];

const INDEX: &str = r#"<EvaluationInputData><Images>
<Image><ChannelID>1</ChannelID><ChannelName>HOECHST 33342</ChannelName><ImageResolutionX Unit="m">5E-07</ImageResolutionX>
<ImageResolutionY Unit="m">5E-07</ImageResolutionY></Image>
<Image><ChannelID>5</ChannelID><ChannelName>Alexa 488</ChannelName></Image></Images></EvaluationInputData>"#;

#[test]
fn harmony_is_recognised_and_named_by_its_index() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("BR1__2020-11-05-Measurement 1/Images");
    write(&folder, &HARMONY);
    std::fs::write(folder.join("Index.xml"), INDEX).unwrap();
    let store = open(&folder, &options()).unwrap();
    assert_eq!(names(&*store), ["r01c10f01", "r01c10f02", "r02c01f01"]);
    assert_eq!(image(&*store, 0), ([1, 2, 1], pixels(&[2, 3])));
    assert_eq!(image(&*store, 1), ([1, 2, 1], pixels(&[1, 4])));
    assert_eq!(image(&*store, 2), ([1, 2, 1], pixels(&[0, 5])));
    assert_eq!(channels(&*store), ["HOECHST 33342", "Alexa 488"]);
    assert_eq!(store.metadata(0).unwrap().physical_size_y.unwrap().value, 0.5);
    assert_eq!(store.hints().feature_names(), ["Metadata_Plate", "Metadata_Well", "Metadata_Site"]);
    assert_eq!(text(&*store, "Metadata_Plate"), ["BR1", "BR1", "BR1"]);
    assert_eq!(text(&*store, "Metadata_Well"), ["A10", "A10", "B01"]);
    assert_eq!(numbers(&*store, "Metadata_Site"), [1, 2, 1]);
    assert!(store.layout().unwrap().variant.starts_with("harmony sites of 2 files; "));
    let mut files: Vec<_> = store.files_of(&[1]).unwrap();
    files.sort();
    assert_eq!(files, [folder.join(HARMONY[1]), folder.join(HARMONY[4])]);
    assert_eq!(store.files().unwrap().len(), 6);
    // From above the plate's folder is part of the names.
    let above = open(dir.path(), &options()).unwrap();
    assert_eq!(names(&*above)[0], "BR1__2020-11-05-Measurement 1/Images/r01c10f01");
    assert_eq!(text(&*above, "Metadata_Plate"), ["BR1", "BR1", "BR1"]);
}

#[test]
fn each_plate_has_the_channels_and_pixels_of_its_own_index() {
    let dir = tempfile::tempdir().unwrap();
    for (plate, second, size) in [("BR1", "Alexa 488", "5E-07"), ("BR2", "Alexa 568", "2E-07")] {
        let folder = dir.path().join(format!("{plate}__2020-11-05-Measurement 1/Images"));
        write(&folder, &HARMONY);
        let index = INDEX.replace("Alexa 488", second).replace("5E-07", size);
        std::fs::write(folder.join("Index.xml"), index).unwrap();
    }
    let store = open(dir.path(), &options()).unwrap();
    let of = |row| {
        let metadata = store.metadata(row).unwrap();
        let names: Vec<String> = metadata.channels.into_iter().map(|channel| channel.name).collect();
        (names.join(", "), metadata.physical_size_x.unwrap().value)
    };
    assert_eq!(text(&*store, "Metadata_Plate"), ["BR1", "BR1", "BR1", "BR2", "BR2", "BR2"]);
    assert_eq!(of(3), ("HOECHST 33342, Alexa 568".to_owned(), 0.2));
    assert_eq!(of(0), ("HOECHST 33342, Alexa 488".to_owned(), 0.5));
    assert_eq!(of(5), of(3));
}

#[test]
fn single_files_are_read_where_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &HARMONY);
    let tiff = OpenOptions { format: Some("tiff".to_owned()), ..options() };
    for options in [layout("files"), tiff] {
        let store = open(dir.path(), &options).unwrap();
        assert_eq!((store.len(), image(&*store, 0)), (6, ([1, 1, 1], pixels(&[2]))));
        assert!(store.hints().sites.is_none());
    }
    assert_eq!(unmatched_names(&*open(dir.path(), &options()).unwrap(), &options()), None);
    // One name that is another's keeps files apart, and is told.
    write(dir.path(), &["overview.tif"]);
    let store = open(dir.path(), &options()).unwrap();
    assert_eq!(store.len(), 7);
    let found = unmatched_names(&*store, &options()).unwrap();
    assert_eq!((found.layout, found.fit, found.of, found.others.as_str()), ("harmony", 6, 7, "overview.tif"));
    let files = open(dir.path(), &layout("files")).unwrap();
    assert_eq!(unmatched_names(&*files, &layout("files")), None);
    let skip = OpenOptions { unmatched: Unmatched::Skip, ..options() };
    let store = open(dir.path(), &skip).unwrap();
    assert_eq!((store.len(), unmatched_names(&*store, &skip)), (3, None));
    assert_eq!(store.hints().sites.unwrap().summary().layout, "harmony");
    let error = failure(dir.path(), &layout("harmony"));
    assert!(error.contains("1 file of 7 does not fit harmony: overview.tif"), "{error}");
    assert!(error.contains("(hint: unmatched skip leaves them out)"), "{error}");
    let skip = OpenOptions { unmatched: Unmatched::Skip, ..layout("harmony") };
    let store = open(dir.path(), &skip).unwrap();
    assert_eq!((store.len(), store.hints().sites.unwrap().summary().unmatched), (3, 1));
    assert_eq!(store.files().unwrap().len(), 6);
}

#[test]
fn regions_and_several_requests_are_read_at_once() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &HARMONY);
    let store = open(dir.path(), &options()).unwrap();
    let part = Region { start: [0, 1, 0, 1, 1], size: [1, 1, 1, 1, 2] };
    let whole = store.row_info(0).unwrap().shape.full();
    let requests = [Request { row: 2, region: part }, Request { row: 0, region: whole }];
    let (mut first, mut second) = (vec![0; 4], vec![0; 24]);
    let dtype = store.row_info(0).unwrap().dtype;
    let mut sink =
        CopySink::new(vec![(part, dtype, first.as_mut_slice()), (whole, dtype, second.as_mut_slice())]);
    store.read(&requests, &mut Scratch::default(), &mut sink).unwrap();
    drop(sink);
    // The second row of file 5, from its second pixel on.
    assert_eq!(first, [504u16, 505].map(u16::to_le_bytes).concat());
    assert_eq!(second, pixels(&[2, 3]));
    let outside = Request { row: 0, region: Region { start: [0, 2, 0, 0, 0], ..part } };
    let mut sink = CopySink::new(vec![(part, dtype, first.as_mut_slice())]);
    let error = store.read(&[outside], &mut Scratch::default(), &mut sink).unwrap_err();
    assert!(error.to_string().contains("does not fit"), "{error}");
    assert!(store.row_info(3).is_err() && store.name(usize::MAX).is_err());
}

/// A layout, names of files, the name of the first site, its size along T, C and Z, its channels.
type Case<'n> = (&'n str, &'n [&'n str], &'n str, [usize; 3], &'n [&'n str]);

#[test]
fn every_microscope_is_recognised() {
    let cases: [Case<'_>; 8] = [
        (
            "imagexpress",
            &[
                "TimePoint_1/ZStep_1/P1_A01_s1_w1AB1.tif",
                "TimePoint_1/ZStep_1/P1_A01_s1_w2CD2.tif",
                "TimePoint_1/ZStep_2/P1_A01_s1_w1EF3.tif",
                "TimePoint_1/ZStep_2/P1_A01_s1_w2AB4.tif",
                "TimePoint_2/ZStep_1/P1_A01_s1_w1AB5.tif",
                "TimePoint_2/ZStep_1/P1_A01_s1_w2AB6.tif",
                "TimePoint_2/ZStep_2/P1_A01_s1_w1AB7.tif",
                "TimePoint_2/ZStep_2/P1_A01_s1_w2AB8.tif",
                "TimePoint_1/ZStep_1/P1_A01_s1_w1_thumbAB9.tif",
            ],
            "P1_A01_s1",
            [2, 2, 2],
            &["w1", "w2"],
        ),
        (
            "cellvoyager",
            &["AS1_B03_T0001F002L01A01Z01C01.tif", "AS1_B03_T0001F002L01A02Z01C02.tif"],
            "AS1_B03_F002",
            [1, 2, 1],
            &["C01", "C02"],
        ),
        (
            "cv1000",
            &["Image/W1F002T0001Z01C1.tif", "Image/W1F002T0001Z01C2.tif"],
            "Image/W1F002",
            [1, 2, 1],
            &["C1", "C2"],
        ),
        (
            "columbus",
            &["003005-1-001001001.tif", "003005-1-001001002.tif"],
            "003005-1",
            [1, 2, 1],
            &["001", "002"],
        ),
        (
            "harmony",
            &["r02c07f01p01rc1-ch1sk1fk1fl1.tiff", "r02c07f01p01rc2-ch1sk1fk1fl1.tiff"],
            "r02c07f01",
            [1, 2, 1],
            &["rc1", "rc2"],
        ),
        (
            "incell",
            &["A - 01(fld 1 wv DAPI - DAPI).tif", "A - 01(fld 1 wv FITC - FITC).tif"],
            "A - 01(fld 1)",
            [1, 2, 1],
            &["DAPI - DAPI", "FITC - FITC"],
        ),
        ("cellomics", &["AS_1_D03f00d0.tif", "AS_1_D03f00d1.tif"], "AS_1_D03f00", [1, 2, 1], &["d0", "d1"]),
        (
            "harmony",
            &["r01c01f01p01-ch1sk1fk1fl1.tiff", "r01c01f01p02-ch1sk1fk1fl1.tiff"],
            "r01c01f01",
            [1, 1, 2],
            &["ch1"],
        ),
    ];
    for (microscope, files, name, shape, called) in cases {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), files);
        let store = open(dir.path(), &options()).unwrap();
        assert_eq!(store.hints().sites.unwrap().summary().layout, microscope);
        assert_eq!(
            (names(&*store), channels(&*store)),
            (vec![name.to_owned()], called.iter().map(|&c| c.to_owned()).collect::<Vec<_>>())
        );
        // In the order T, C, Z: of ImageXpress each channel's two planes follow each other.
        let order: &[u16] = if microscope == "imagexpress" { &[0, 2, 1, 3, 4, 6, 5, 7] } else { &[0, 1] };
        assert_eq!(image(&*store, 0), (shape, pixels(order)), "{microscope}");
    }
}

#[test]
fn wells_may_have_their_row_behind_their_column() {
    let dir = tempfile::tempdir().unwrap();
    let files = ["01A", "02A", "01B", "02B"].map(|well| [1, 2].map(|c| format!("{well}_x_s1_w{c}.tif")));
    write(dir.path(), &files.iter().flatten().map(String::as_str).collect::<Vec<_>>());
    for text_of_wells in ["{well}", "{well:w}", "{well:rw}"] {
        let store = open(dir.path(), &pattern(&format!("{text_of_wells}*_s{{site}}_w{{channel}}"))).unwrap();
        assert_eq!(text(&*store, "Metadata_Well"), ["01A", "01B", "02A", "02B"], "{text_of_wells}");
        assert_eq!(image(&*store, 1), ([1, 2, 1], pixels(&[4, 5])));
    }
    // Not where one of them is no such well.
    write(dir.path(), &["mask_x_s1_w1.tif"]);
    let error = failure(dir.path(), &pattern("{well}*_s{site}_w{channel}"));
    assert!(error.contains("are the same plane by their names"), "{error}");
}

#[test]
fn wells_of_older_microscopes_are_columns() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["003005-1-001001001.tif", "003005-1-001001002.tif", "012024-10-001001001.tif"]);
    let store = open(dir.path(), &options()).unwrap();
    assert_eq!(names(&*store), ["003005-1", "012024-10"]);
    assert_eq!(text(&*store, "Metadata_Well"), ["C05", "L24"]);
    assert_eq!(numbers(&*store, "Metadata_Site"), [1, 10]);
    let dir = tempfile::tempdir().unwrap();
    let files = ["W10F001T0001Z01C1", "W2F001T0001Z01C1", "W10F001T0001Z01C2", "W2F001T0001Z01C2"]
        .map(|file| format!("M1/Image/{file}.tif"));
    write(dir.path(), &files.each_ref().map(String::as_str));
    let store = open(dir.path(), &options()).unwrap();
    assert_eq!(names(&*store), ["M1/Image/W2F001", "M1/Image/W10F001"]);
    assert_eq!(text(&*store, "Metadata_Plate"), ["M1", "M1"]);
    assert_eq!(text(&*store, "Metadata_Well"), ["2", "10"]);
}

#[test]
fn a_plate_of_one_channel_is_recognised_by_strict_names() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &["P_A01_s1_w1.tif", "P_A01_s2_w1.tif", "P_A02_s1_w1AB12CD34-56.tif"]);
    let store = open(dir.path(), &options()).unwrap();
    assert_eq!(names(&*store), ["P_A01_s1", "P_A01_s2", "P_A02_s1"]);
    assert_eq!(text(&*store, "Metadata_Well"), ["A01", "A01", "A02"]);
    assert_eq!(image(&*store, 1), ([1, 1, 1], pixels(&[1])));
    // Something else behind the channel, and names without a site, are files.
    for other in ["P_A03_s1_w1_mask.tif", "P_A03_w1.tif"] {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &["P_A01_s1_w1.tif", other]);
        let store = open(dir.path(), &options()).unwrap();
        assert!(store.hints().sites.is_none(), "{other}");
    }
}

#[test]
fn wells_of_many_files_are_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let files: Vec<String> = (0..300)
        .map(|i| format!("P_{}{:02}_s1_w{}.tif", ["A", "B"][i / 2 % 2], i / 4 + 1, i % 2 + 1))
        .collect();
    write(dir.path(), &files.iter().map(String::as_str).collect::<Vec<_>>());
    // More files than are looked into.
    let store = open(dir.path(), &options()).unwrap();
    assert_eq!(
        (store.len(), names(&*store)[0].as_str(), names(&*store)[149].as_str()),
        (150, "P_A01_s1", "P_B75_s1")
    );
    assert_eq!(image(&*store, 75), ([1, 2, 1], pixels(&[2, 3])));
}

#[test]
fn a_pattern_says_what_files_are() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        &[
            "B7_01_1_3_DAPI_001.tif",
            "B7_01_2_3_GFP_001.tif",
            "B12_01_1_3_DAPI_001.tif",
            "B12_01_2_3_GFP_001.tif",
        ],
    );
    let store = open(dir.path(), &pattern("{well}_{batch}_*_{site}_{channel}_001.tif")).unwrap();
    assert_eq!(names(&*store), ["B7_01_3", "B12_01_3"]);
    assert_eq!(channels(&*store), ["DAPI", "GFP"]);
    assert_eq!(image(&*store, 1), ([1, 2, 1], pixels(&[2, 3])));
    assert_eq!(store.hints().feature_names(), ["Metadata_Well", "Metadata_Site", "batch"]);
    assert_eq!(text(&*store, "Metadata_Well"), ["B7", "B12"]);
    assert_eq!(text(&*store, "batch"), ["01", "01"]);
    for (given, why) in [
        ("{well}_{channel", "a { is not closed"),
        ("{well}-{channel}", "none of 4 files fits: B12_01_1_3_DAPI_001.tif"),
        ("{well}_01_*", "B12_01_1_3_DAPI_001.tif and B12_01_2_3_GFP_001.tif are the same plane"),
        ("B7_01_*_{site}_{channel}_001.tif", "2 files of 4 do not fit"),
    ] {
        let error = failure(dir.path(), &pattern(given));
        assert!(error.contains(why), "{given}: {error}");
    }
    let both = OpenOptions { layout: Some("harmony".to_owned()), ..pattern("{channel}") };
    assert!(failure(dir.path(), &both).contains("both a pattern and the layout"));
    assert!(failure(dir.path(), &layout("zeiss")).contains("cellomics, cellprofiler, ome-companion, files"));
    assert!(failure(dir.path(), &layout("{well}_{channel}")).contains("a pattern of names and no layout"));
    let file = &dir.path().join("B7_01_1_3_DAPI_001.tif");
    assert!(failure(file, &pattern("{well}_{channel}")).contains("is one file"));
}

#[test]
fn files_of_a_site_must_be_alike() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &HARMONY);
    std::fs::write(dir.path().join(HARMONY[3]), tiff(0, [4, 2], "")).unwrap();
    let store = open(dir.path(), &options()).unwrap();
    let error = wellread_store::read_image(&*store, 0).unwrap_err();
    let message = error.to_string();
    assert_eq!(error.row_index(), Some(0));
    for part in [HARMONY[3], "1x1x1x2x4", HARMONY[2], "1x1x1x2x3"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(wellread_store::read_image(&*store, 1).is_ok());
}

#[test]
fn a_file_without_content_is_named_with_the_row_of_its_site() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &HARMONY);
    std::fs::write(dir.path().join(HARMONY[4]), "").unwrap();
    let files = |rows: &[usize]| open(dir.path(), &options()).unwrap().files_of(rows);
    let e = files(&[0, 1]).unwrap_err();
    assert_eq!((e.row_index(), e.cause(), files(&[0]).unwrap().len()), (Some(1), "the file is empty", 2));
}

#[test]
fn a_channel_of_another_type_is_named() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &HARMONY);
    // As many pixels as the others have, of 8 bits each.
    std::fs::write(dir.path().join(HARMONY[3]), tiff_of(&[0; 6], 8, SIZE, "")).unwrap();
    let store = open(dir.path(), &options()).unwrap();
    let error = wellread_store::read_image(&*store, 0).unwrap_err();
    assert_eq!(error.row_index(), Some(0));
    let message = error.to_string();
    let cause = format!(
        "is 1x1x1x2x3 uint8, and {}, of the same site, 1x1x1x2x3 uint16 (TCZYX): files of a site must be alike",
        HARMONY[2]
    );
    for part in [HARMONY[3], cause.as_str(), "read single files"] {
        assert!(message.contains(part), "{message}");
    }
    // Its site alone is refused, also where no pixel is read.
    let looked_at = store.hints().look_into(0).unwrap_err();
    assert_eq!((looked_at.row_index(), looked_at.to_string()), (Some(0), message));
    store.hints().look_into(1).unwrap();
    assert_eq!(image(&*store, 1), ([1, 2, 1], pixels(&[1, 4])));
}

#[test]
fn two_measurements_of_a_plate_are_kept_apart() {
    let dir = tempfile::tempdir().unwrap();
    let planes = ["r01c01f01p01-ch1sk1fk1fl1.tiff", "r01c01f01p01-ch2sk1fk1fl1.tiff"];
    let files: Vec<String> =
        ["M1", "M2"].iter().flat_map(|m| planes.map(|plane| format!("P__2020-{m}/Images/{plane}"))).collect();
    write(dir.path(), &files.iter().map(String::as_str).collect::<Vec<_>>());
    let store = open(dir.path(), &options()).unwrap();
    assert_eq!(names(&*store), ["P__2020-M1/Images/r01c01f01", "P__2020-M2/Images/r01c01f01"]);
    assert_eq!(image(&*store, 1), ([1, 2, 1], pixels(&[2, 3])));
    assert_eq!(text(&*store, "Metadata_Plate"), ["P", "P"]);
    assert_eq!(text(&*store, "Metadata_Measurement"), ["2020-M1", "2020-M2"]);
    // One measurement of each plate leaves nothing to tell apart.
    let other = dir.path().join("two");
    write(
        &other,
        &["P__1/Images/r01c01f01p01-ch1sk1fk1fl1.tiff", "Q__2/Images/r01c01f01p01-ch1sk1fk1fl1.tiff"],
    );
    let two = open(&other, &layout("harmony")).unwrap();
    assert_eq!(text(&*two, "Metadata_Plate"), ["P", "Q"]);
    assert!(!two.hints().feature_names().contains(&"Metadata_Measurement".to_owned()));
    let one = open(dir.path().join("P__2020-M1"), &options()).unwrap();
    assert!(!one.hints().feature_names().contains(&"Metadata_Measurement".to_owned()));
}

#[test]
fn a_plane_in_two_files_makes_single_images_and_that_is_told() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &HARMONY);
    let twice = HARMONY[0].replace(".tiff", ".tif");
    write(dir.path(), &[&twice]);
    let store = open(dir.path(), &options()).unwrap();
    let found = unmatched_names(&*store, &options()).unwrap();
    assert_eq!((found.layout, found.fit, found.of, store.len()), ("harmony", 7, 7, 7));
    assert!(found.is_clash() && found.others.contains("are the same plane by their names"), "{found}");
    assert!(found.others.contains(&twice), "{found}");
}
