//! The machine in words: for reports, figures and `wellread doctor`.

use wellread_measure::clock::Clock;
use wellread_measure::environment::Environment;

/// Named values for people, most telling first. What could not be read is left out.
pub fn facts(e: &Environment) -> Vec<(&'static str, String)> {
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let mut facts = vec![("cpu", cpu(e))];
    if let Some(memory) = e.usable_memory() {
        facts.push(("memory", gib(memory)));
    }
    let caches: Vec<String> = e
        .cpu
        .caches
        .iter()
        .filter(|c| c.level >= 2)
        .map(|c| format!("L{} {:.1} MiB", c.level, c.bytes as f64 / f64::from(1 << 20)))
        .collect();
    if !caches.is_empty() {
        facts.push(("caches", caches.join(", ")));
    }
    if !e.cpu.vector_extensions.is_empty() {
        facts.push(("vectors", e.cpu.vector_extensions.join(", ")));
    }
    let clock = Clock::calibrated();
    facts.push((
        "clock",
        format!(
            "a look costs {:.0} ns, the least step is {:.0} ns",
            clock.overhead_seconds * 1e9,
            clock.resolution_seconds * 1e9
        ),
    ));
    let system = e.platform.distribution.clone().unwrap_or_else(|| e.platform.os.clone());
    facts.push(("system", format!("{system}, kernel {}", e.platform.kernel.as_deref().unwrap_or("unknown"))));
    if let Some(vm) = &e.platform.virtual_machine {
        facts.push(("virtual machine", vm.clone()));
    }
    for disk in &e.storage {
        let filesystem = disk.filesystem.as_deref().unwrap_or("unknown filesystem");
        let free = disk.free_bytes.map_or(String::new(), |b| format!(", {} free", gib(b)));
        facts.push(("storage", format!("{filesystem}{free}")));
    }
    if let Some([one, five, fifteen]) = e.load {
        facts.push(("load before", format!("{one:.2}, {five:.2}, {fifteen:.2}")));
    }
    if let Some(shares) = &e.during_run {
        facts.push((
            "during the run",
            format!(
                "{:.0} % busy, {:.1} % stolen by other machines",
                100.0 * shares.busy,
                100.0 * shares.steal
            ),
        ));
    }
    if let Some(git) = &e.git {
        facts.push(("commit of the working folder", git.commit.clone()));
    }
    facts.push(("built with", e.build.rustc.clone()));
    facts
}

/// Processor and cores.
fn cpu(e: &Environment) -> String {
    format!("{}, {} cores", e.cpu.model.as_deref().unwrap_or(&e.platform.architecture), e.usable_cores())
}

/// One line for the foot of a figure.
pub fn short(e: &Environment) -> String {
    let disk = e.storage.first().and_then(|d| d.filesystem.as_deref());
    disk.map_or_else(|| cpu(e), |disk| format!("{}, {disk}", cpu(e)))
}
