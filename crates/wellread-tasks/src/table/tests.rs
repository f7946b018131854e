use super::*;
use proptest::prelude::*;

fn one(text: &str) -> Row {
    let mut rows = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(rows.len(), 1, "{text}");
    rows.remove(0)
}

#[test]
fn upstreams_own_tables_are_read() {
    let rows = parse(
        "branch,experiment,trainer,max_epochs,batch_size,overrides\n\
         # phases\n\
         main,im2im/segmentation,gpu,5,8,\n\
         \n\
         phase-branch-name,im2im/segmentation,gpu,5,8,custom_override=value\n",
    )
    .unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].line, rows[0].branch.as_str(), rows[0].overrides.len()), (3, "main", 0));
    assert_eq!((rows[1].max_epochs, rows[1].batch_size), (Some(5), Some(8)));
    assert_eq!(rows[1].overrides, ["custom_override=value"]);
    let row = one("branch,experiment,checkpoint_path,data_path,trainer,batch_size\r\n\
         main,im2im/segmentation,path/to/checkpoint.ckpt,\"path, with comma\",cpu,\r\n");
    assert_eq!(row.data_path.as_deref(), Some("path, with comma"));
    assert_eq!((row.trainer, row.batch_size, row.overrides.len()), (Some(Trainer::Cpu), None, 0));
}

#[test]
fn the_same_is_written_in_many_ways() {
    let all = [
        "branch,experiment,overrides\nmain,e,\"a=1,b=2\"",
        "branch,experiment,overrides\nmain,e,a=1,b=2",
        "\u{feff}branch,experiment,overrides\r\nmain,e,a=1,b=2\r\n",
        "Overrides , Experiment , Branch\n\"a=1 , b=2\" , e , main\n",
        "overrides,experiment,branch\na=1,e,main,b=2,,\n",
        "branch,experiment\n  # comment\nmain,e,a=1,b=2\n",
        "\n\n# first\nbranch,experiment,overrides\rmain,\"e\",\"a=1,,b=2,\"\r",
    ];
    for text in all {
        let row = one(text);
        assert_eq!((row.branch.as_str(), row.experiment.as_str()), ("main", "e"), "{text}");
        assert_eq!(row.overrides, ["a=1", "b=2"], "{text}");
    }
    let row = one("branch,experiment,overrides\nm,e,a=[1,2],b={x:1,y:(2,3)},c='x,y',~d,\"e=\"\"q,r\"\"\"");
    assert_eq!(row.overrides, ["a=[1,2]", "b={x:1,y:(2,3)}", "c='x,y'", "~d", "e=\"q,r\""]);
    let row = one("branch,experiment\nmain,\"sh -c \"\"echo a, b\"\"\"");
    assert_eq!(row.experiment, "sh -c \"echo a, b\"");
}

#[test]
fn a_row_with_a_mistake_is_a_row_where_it_is_known_which() {
    let text = "branch,experiment,trainer,batch_size\nmain,e,tpu,4\nmain,e,cpu,4\n";
    let rows = super::rows(text).unwrap();
    let problem = "line 2, column 8: trainer: \"tpu\" is no trainer; there are gpu, cpu, ddp";
    assert_eq!((rows[0].line, rows[0].experiment.as_str()), (2, "e"));
    assert_eq!(rows[0].problem.as_deref(), Some(problem));
    assert_eq!((rows[1].batch_size, &rows[1].problem), (Some(4), &None));
    assert_eq!(parse(text), Err(problem.to_owned()));
    assert!(super::rows("branch,experiment,trainer\n,e,tpu\n").is_err(), "nobody knows of which branch");
}

#[test]
fn what_is_wrong_is_said_with_line_and_column() {
    let header = "branch,experiment,trainer,max_epochs,batch_size,overrides\n";
    let cases = [
        ("", "line 1, column 1: the table is empty"),
        ("# only\n\n", "the table is empty"),
        (header, "no tasks below"),
        ("main,im2im/segmentation,gpu\n", "line 1, column 1: \"main\" is no column"),
        (
            "branch,experiment,batchsize\nm,e,1",
            "column 19: \"batchsize\" is no column; did you mean batch_size?",
        ),
        ("branch;experiment\nm;e", "is no column; the fields of a table are separated by commas."),
        ("branch,branch,experiment\nm,m,e", "line 1, column 8: the column branch is there twice"),
        ("branch,trainer\nm,cpu", "the column experiment is missing"),
        ("branch,experiment\n,e", "line 2, column 1: branch: the field is empty"),
        ("branch,experiment\nmain", "line 2, column 1: experiment: the field is empty"),
        (&format!("{header}main,e,tpu"), "line 2, column 8: trainer: \"tpu\" is no trainer; there are gpu"),
        (&format!("{header}main,e,cpu,0"), "line 2, column 12: max_epochs: \"0\" is no whole number"),
        (&format!("{header}main,e,cpu,-3"), "max_epochs: \"-3\""),
        (&format!("{header}main,e,cpu,1e9"), "max_epochs: \"1e9\""),
        (
            &format!("{header}main,e,cpu,1,99999999999999999999"),
            "column 14: batch_size: \"99999999999999999999\"",
        ),
        (&format!("{header}main,e,cpu,NaN"), "max_epochs: \"NaN\""),
        (&format!("{header}main,e,cpu,1,1,nonsense"), "column 16: overrides: \"nonsense\" is not key=value"),
        (
            &format!("{header}main,e,cpu,1,1,a=1,8"),
            "\"8\" is not key=value (the row has 7 fields and the table 6",
        ),
        (&format!("{header}main,e,cpu,1,1,=1"), "\"=1\" is not key=value"),
        (&format!("{header}main,e,cpu,1,1,\"a=[1,2\""), "']' is missing"),
        (&format!("{header}main,e,cpu,1,1,a=1]"), "']' closes nothing"),
        (&format!("{header}main,\"e"), "line 2, column 6: this quote is not closed"),
        (&format!("{header}main,\"e\"x"), "line 2, column 9: expected a comma"),
        (&format!("{header}ma\0in,e"), "line 2, column 3: a control character"),
    ];
    for (text, expected) in cases {
        let said = parse(text).unwrap_err();
        assert!(said.contains(expected), "{text:?}\n  said     {said}\n  expected {expected}");
    }
}

#[test]
fn files_that_are_no_table_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    assert!(format!("{:#}", read(&path).unwrap_err()).contains("cannot read the table"));
    assert!(format!("{:#}", read(dir.path()).unwrap_err()).contains("is a folder"));
    std::fs::write(&path, b"branch,experiment\nm,\xff\n").unwrap();
    assert!(format!("{:#}", read(&path).unwrap_err()).contains("line 2, column 3: not UTF-8"));
    std::fs::File::create(&path).unwrap().set_len(MAX_TABLE_BYTES + 1).unwrap();
    assert!(format!("{:#}", read(&path).unwrap_err()).contains("no table of tasks"));
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,200}", noise in prop::collection::vec(prop::sample::select(vec![
        ",", "\"", "\n", "\r", "#", "branch", "experiment", "overrides", "a=1", "[", "]", "'", " ", "\u{feff}", "5",
    ]), 0..60)) {
        let _ = parse(&text);
        let _ = parse(&noise.concat());
        let _ = parse(&format!("branch,experiment,overrides\n{}", noise.concat()));
    }

    #[test]
    fn any_row_is_read_back_as_it_was_written(
        branch in "[a-zA-Z0-9/#_.\"'é-]{1,20}", experiment in "[a-z /,\"#=;|&]{0,20}x",
        batch in prop::option::of(1_u32..=MAX_COUNT), keys in prop::collection::vec("[a-z.]{1,8}=[a-z0-9 ]{0,5}[a-z0-9]", 0..5),
    ) {
        let quote = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let batch_text = batch.map_or(String::new(), |n| n.to_string());
        let text = format!(
            "batch_size,overrides,branch,experiment\n{batch_text},{},{},{}\n",
            quote(&keys.join(",")), quote(&branch), quote(&experiment)
        );
        let row = parse(&text).unwrap().remove(0);
        prop_assert_eq!(row.branch, branch);
        prop_assert_eq!(row.experiment, experiment.trim());
        prop_assert_eq!(row.batch_size, batch);
        prop_assert_eq!(row.overrides, keys);
    }
}
