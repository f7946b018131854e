//! The machine in words: for reports, figures and `wellread doctor`.

use wellread_measure::clock::Clock;
use wellread_measure::environment::{Environment, cores};

/// When a machine was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Now: nothing is measured.
    Now,
    /// Before a run, whose report this is for.
    BeforeRun,
}

/// Named values for people, most telling first. Values that could not be read are left out.
pub fn facts(e: &Environment, moment: Moment) -> Vec<(&'static str, String)> {
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let mut facts = vec![("cpu", cpu(e))];
    let clock = clock(e, moment);
    if !clock.is_empty() {
        facts.push(("frequency", clock));
    }
    if let Some(nodes) = e.cpu.numa_nodes.filter(|nodes| *nodes > 1) {
        facts.push(("memory nodes (NUMA)", nodes.to_string()));
    }
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
            "reading it costs {:.0} ns, the least step is {:.0} ns",
            clock.overhead_seconds * 1e9,
            clock.resolution_seconds * 1e9
        ),
    ));
    let system = e.platform.distribution.clone().unwrap_or_else(|| e.platform.os.clone());
    facts.push(("system", format!("{system}, kernel {}", e.platform.kernel.as_deref().unwrap_or("unknown"))));
    if let Some(vm) = &e.platform.virtual_machine {
        facts.push(("virtual machine", vm.clone()));
    }
    if let Some(container) = &e.platform.container {
        let limits = [
            e.limits.cpus.map(cores),
            e.limits.memory_bytes.map(|bytes| format!("{} of memory", gib(bytes))),
        ];
        let limits: Vec<_> = limits.into_iter().flatten().collect();
        let limits = if limits.is_empty() { "no limits".to_owned() } else { limits.join(", ") };
        facts.push(("container", format!("{container:?}, {limits}")));
    }
    for disk in &e.storage {
        let filesystem = disk.filesystem.as_deref().unwrap_or("unknown filesystem");
        let free = disk.free_bytes.map_or(String::new(), |b| format!(", {} free", gib(b)));
        let on = disk.model.as_ref().or(disk.device.as_ref());
        let on = on.map_or(String::new(), |device| format!(" on {}", device.trim()));
        let kind = disk.kind(e.platform.virtual_machine.is_some());
        let kind = kind.map_or(String::new(), |kind| format!(" ({kind})"));
        facts.push(("storage", format!("{filesystem}{on}{kind}{free}")));
    }
    if let Some([one, five, fifteen]) = e.load {
        facts.push((
            if moment == Moment::BeforeRun { "load before" } else { "load" },
            format!("{one:.2}, {five:.2}, {fifteen:.2} (means of 1, 5 and 15 minutes)"),
        ));
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

/// The processor's clock and what governs it, as far as the system tells; empty where it does not.
fn clock(e: &Environment, moment: Moment) -> String {
    let when = if moment == Moment::BeforeRun { " before the run" } else { "" };
    let parts = [
        e.cpu.mhz.map(|mhz| format!("{mhz} MHz{when}")),
        e.cpu.max_mhz.map(|mhz| format!("{mhz} MHz at most")),
        e.cpu.governor.as_ref().map(|governor| format!("governor {governor}")),
        e.cpu.boost.map(|on| format!("boost {}", if on { "on" } else { "off" })),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Processor and cores.
fn cpu(e: &Environment) -> String {
    format!("{}, {}", e.cpu.model.as_deref().unwrap_or(&e.platform.architecture), cores(e.usable_cores()))
}

/// One line for the foot of a figure.
pub fn short(e: &Environment) -> String {
    let disk = e.storage.first().and_then(|d| d.filesystem.as_deref());
    disk.map_or_else(|| cpu(e), |disk| format!("{}, {disk}", cpu(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_only_where_there_is_one() {
        let mut e = Environment::capture::<&str>(&[]);
        e.cpu.mhz = Some(2700);
        e.load = Some([0.5, 0.25, 0.125]);
        let of =
            |moment, name: &str| facts(&e, moment).into_iter().find(|fact| fact.0 == name).map(|fact| fact.1);
        assert!(of(Moment::Now, "frequency").unwrap().starts_with("2700 MHz"));
        assert!(!of(Moment::Now, "frequency").unwrap().contains("run"));
        assert!(of(Moment::BeforeRun, "frequency").unwrap().starts_with("2700 MHz before the run"));
        assert!(of(Moment::Now, "load").is_some() && of(Moment::Now, "load before").is_none());
        assert!(of(Moment::BeforeRun, "load before").is_some());
    }
}
