use super::*;
use crate::comparison::{PhaseComparison, Ratio};

#[test]
fn a_title_says_that_runs_were_too_few_to_conclude() {
    let phase = |verdict| PhaseComparison {
        phase: "batch_step".to_owned(),
        repeated: true,
        baseline_seconds: 1.0,
        seconds: 2.0,
        ratio: Ratio { estimate: 2.0, low: None, high: None },
        runs: [1, 1],
        p_value: None,
        verdict,
        reason: None,
    };
    let compared = |verdicts: &[Verdict]| Comparison {
        experiment: "e".to_owned(),
        baseline: "main".to_owned(),
        candidate: "wider".to_owned(),
        differs: vec![],
        phases: verdicts.iter().copied().map(phase).collect(),
        sentence: String::new(),
        detail: String::new(),
    };
    let few = compared(&[Verdict::TooFewData, Verdict::TooFewData]);
    let said = title(Mode::Train, std::slice::from_ref(&few));
    assert_eq!(said, "Which branch trains faster, and in which part? Too short to say");
    let said = title(Mode::Inference, &[few, compared(&[Verdict::TooFewData, Verdict::NoDifference])]);
    assert_eq!(said, "Which branch predicts faster, and in which part?");
    // Nothing was compared.
    assert!(title(Mode::Train, &[]).ends_with("part?"));
}

#[test]
fn curves_may_have_gaps_and_be_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metrics.csv");
    std::fs::write(
        &path,
        "epoch,step,train_loss,val_loss,val_dice,val_pearson\n0,1,0.9,,\n0,2,nan,,\n\n1,3,0.5,0.6,0.8,0.7\nx,y\n",
    )
    .unwrap();
    let rows = curve(&path).unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1][3], ("val_dice".to_owned(), Cell::F64(0.8)));
    assert_eq!(rows[1][4], ("val_pearson".to_owned(), Cell::F64(0.7)));
    assert_eq!((&rows[0][0].1, &rows[1][0].1), (&Cell::I64(0), &Cell::I64(1)));
    std::fs::write(&path, "epoch,train_loss\n0.25,0.9\n0.5,0.8\n1,0.7\n").unwrap();
    let epochs: Vec<Cell> = curve(&path).unwrap().into_iter().map(|row| row[0].1.clone()).collect();
    assert_eq!(epochs, [Cell::F64(0.25), Cell::F64(0.5), Cell::I64(1)]);
    assert_eq!(curve(&dir.path().join("none")), None);
    std::fs::write(&path, b"\xff\xfe").unwrap();
    assert_eq!(curve(&path), None);
    std::fs::write(&path, "").unwrap();
    assert_eq!(curve(&path), None);
}
