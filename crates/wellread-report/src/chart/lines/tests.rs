//! Names beside lines, and values that are missing.

use super::super::figure::{Axis, Layout};
use super::*;
use crate::number::Unit;
use crate::table::Estimate;

#[test]
fn names_are_pushed_apart_and_stay_inside() {
    let at = spread_out(&[10.0, 11.0, 12.0, 99.0, 100.0], 14.0, 4.0, 100.0);
    assert!(at.windows(2).all(|w| w[1] - w[0] >= 13.999), "{at:?}");
    assert!(at[0] >= 4.0 && at[4] <= 100.0, "{at:?}");
    assert_eq!(spread_out(&[20.0, 60.0], 14.0, 0.0, 100.0), [20.0, 60.0]);
}

#[test]
fn what_is_missing_is_told_by_what_it_is_missing_for() {
    let xs = ["none", "lz4", "zstd:3"].map(str::to_owned);
    let words = |places: &[(usize, usize)]| missing_in_words(places, &["size", "write"], &xs, "codec");
    assert_eq!(words(&[(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]), "");
    assert_eq!(words(&[(0, 1), (1, 1)]), " with codec lz4");
    assert_eq!(words(&[(0, 1), (0, 2), (1, 1), (1, 2)]), " with codec lz4, zstd:3");
    assert_eq!(words(&[(1, 0)]), " with codec none (panel \u{201c}write\u{201d})");
    assert_eq!(
        words(&[(0, 0), (0, 1), (1, 1)]),
        " with codec none (panel \u{201c}size\u{201d}) and 2 more combinations"
    );
    assert_eq!(missing_in_words(&[(0, 0), (0, 1)], &[""], &xs, "codec"), " with codec none, lz4");
}

/// The height of a figure of so many lines over two values, with what is drawn.
fn drawn(lines: usize, better: Better, mark: impl Fn(usize) -> Mark) -> (f64, String) {
    let series: Vec<Series> = (0..lines).map(|i| Series::from(format!("line-{i:03}"))).collect();
    let xs = ["1", "2"].map(str::to_owned);
    let section = Section {
        title: String::new(),
        layout: Layout::Lines { series: series.clone(), xs: xs.to_vec(), x_title: "workers".to_owned() },
        panels: vec![Panel {
            title: String::new(),
            axis: Axis { better, ..Axis::new("rate", Unit::Plain("")) },
            marks: (0..2 * lines).map(|slot| mark(slot / 2)).collect(),
        }],
        columns: 1,
        share_axis: false,
    };
    let mut svg = Svg::default();
    let height = draw(&mut svg, &section, &series, &xs, "workers", 0.0, 0.0, 800.0);
    (height, svg.finish("f", 800.0, height, "", ""))
}

#[test]
fn the_way_to_a_name_is_no_line_of_values() {
    let (_, svg) = drawn(2, Better::Higher, |line| Mark::Value(Estimate::exact(1.0 + line as f64)));
    // Two pieces for each name; the values themselves are joined by whole lines.
    assert_eq!(svg.lines().filter(|line| line.contains(LEADER)).count(), 4, "{svg}");
    let mut values = svg.lines().filter(|line| line.contains("<polyline"));
    assert!(values.all(|line| !line.contains("dasharray")), "{svg}");
}

#[test]
fn many_lines_make_no_taller_figure() {
    let value = |line: usize| Mark::Value(Estimate::exact(1.0 + line as f64));
    let (full, svg) = drawn(MAX_NAMES, Better::Higher, value);
    assert!(svg.contains(">line-000<") && svg.contains(">line-023<") && !svg.contains("more<"));
    let (height, svg) = drawn(100, Better::Higher, value);
    assert_eq!(height, full);
    // The better ones are named.
    assert!(svg.contains(">and 77 more<") && svg.contains(">line-099<") && svg.contains(">line-077<"));
    assert!(!svg.contains(">line-076<"));
    let (height, svg) = drawn(100, Better::Lower, value);
    assert_eq!(height, full);
    assert!(svg.contains(">and 77 more<") && svg.contains(">line-000<") && svg.contains(">line-022<"));
    assert!(!svg.contains(">line-023<"));
    // One reason for all has one text.
    let (_, svg) = drawn(3, Better::Higher, |line| match line {
        0 => value(line),
        _ => Mark::Unavailable("no time".to_owned()),
    });
    assert!(svg.contains(">line-001, line-002: no time<"), "{svg}");
    // Each for a reason of its own.
    let reason = |line: usize| Mark::Unavailable(format!("reason {line}"));
    let (height, svg) = drawn(100, Better::Higher, reason);
    assert!(height < 2.0 * full && svg.contains("and 76 more that are missing: the table has the reasons"));
}
