//! Writes a report of invented results, to look at: `cargo run --example sample_report -- DIR`.

#[path = "../tests/it/sample.rs"]
mod sample;

fn main() -> wellread_report::Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "sample-report".to_owned());
    let input = sample::input();
    input.save(&dir)?;
    wellread_report::write_figures(&dir, &input)?;
    let report = wellread_report::write_report(&dir, &input)?;
    println!("{}", report.display());
    Ok(())
}
