use super::*;
use crate::test_store::{Pages, TestStore, linked};
use wellread_store::OpenOptions;

/// That a sample fits says nothing of its set.
#[test]
fn decoded_pixels_of_a_whole_set_are_kept_or_of_no_set() {
    static PAGES: Pages = Pages::new();
    let open = || -> Result<Box<dyn Store>> {
        Ok(Box::new(TestStore { pages: Some(&PAGES), ..TestStore::squares(24, 8)? }))
    };
    let limits = Limits { images: 8, bytes: 1 << 20 };
    let sample = Sample::draw(&*open().unwrap(), limits, 4, 0, None).unwrap();
    let measured = Candidate::sample("parquet", None);
    let note = |sample: &Sample| kept_pages(&measured, &open, sample);
    let found = note(&sample).unwrap();
    assert!(
        found.starts_with("parquet, which is recommended, can keep the whole set decoded in memory ("),
        "{found}"
    );
    assert_eq!(note(&Sample { of: 1_000_000, ..sample.clone() }), None);
}

/// The set read over the link was compared with copies on the disk, and one of these recommended.
#[test]
fn a_set_behind_a_link_is_compared_over_it() {
    let dir = tempfile::tempdir().unwrap();
    let [table, _] = linked(dir.path(), 24);
    let settings = Settings {
        batch_size: Some(4),
        formats: vec!["tiff".to_owned()],
        time_budget: Duration::from_secs(4),
        scratch: dir.path().join("scratch"),
        ..Settings::default()
    };
    let open = || Ok(wellread_store::open(&table, &OpenOptions::default())?);
    let advice = study(open, &settings, &|_, _, _| {}).unwrap().advice;
    assert!(advice.link.is_some_and(|link| !link.predictions.is_empty()));
    assert!(advice.tried.iter().all(|one| one.over_link == one.candidate.is_own_set()));
    assert!(advice.tried.iter().all(|one| !one.over_link || one.versus_fastest.is_none()));
    let why = advice.recommendation.reasons[0].join("; ");
    assert!(why.contains("over the link"), "{why}");
}

/// An answer that waits for the removal of many files is late.
#[test]
fn copies_are_there_until_the_answer_is_had() {
    let dir = tempfile::tempdir().unwrap();
    let ([_, set], scratch) = (linked(dir.path(), 24), dir.path().join("scratch"));
    let settings = Settings {
        batch_size: Some(4),
        formats: vec!["tiff".to_owned()],
        time_budget: Duration::from_secs(30),
        scratch: scratch.clone(),
        ..Settings::default()
    };
    let open = || Ok(wellread_store::open(&set, &OpenOptions::default())?);
    let studied = study(open, &settings, &|_, _, _| {}).unwrap();
    assert!(studied.advice.seconds > 0.0);
    let copies = std::fs::read_dir(studied.copies.path()).unwrap().count();
    assert!(copies > 1, "{copies}");
    drop(studied);
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
}
