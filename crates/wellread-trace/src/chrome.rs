//! The file: JSON in Chrome's trace format, the variant with an object around the list of events.
//!
//! Times in the file are microseconds with three decimals. So no nanosecond is lost and spans nest in the file as
//! they did in the program.

use crate::Recorded;
use std::fmt::{self, Display};
use std::io::{self, Write};

/// A number of nanoseconds as microseconds.
struct Micros(u64);

impl Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A text as JSON.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}

impl Recorded {
    /// Writes all of it as one JSON document. `about` are names and texts that stand in its `otherData`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write, about: &[(&str, &str)]) -> io::Result<()> {
        let process = std::process::id();
        writeln!(out, "{{\"traceEvents\":[")?;
        let name = |of: &str, thread: usize, name: &str| {
            let name = Quoted(name);
            format!(
                "{{\"name\":\"{of}\",\"ph\":\"M\",\"pid\":{process},\"tid\":{thread},\"args\":{{\"name\":{name}}}}}"
            )
        };
        write!(out, "{}", name("process_name", 0, "wellread"))?;
        for (lane, thread) in self.lanes.iter().enumerate() {
            write!(out, ",\n{}", name("thread_name", lane + 1, thread))?;
        }
        for event in &self.events {
            let kind = event.kind;
            let own = (event.label as usize).checked_sub(1).and_then(|i| self.labels.get(i));
            write!(
                out,
                ",\n{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"pid\":{process},\"tid\":{},\"ts\":{},\"dur\":{}",
                Quoted(own.map_or(kind.name(), String::as_str)),
                kind.category(),
                event.lane + 1,
                Micros(event.start),
                Micros(event.end - event.start),
            )?;
            let [first, second] = kind.args();
            match (first, second) {
                ("", _) => {}
                (first, "") => write!(out, ",\"args\":{{\"{first}\":{}}}", event.args[0])?,
                (first, second) => {
                    write!(
                        out,
                        ",\"args\":{{\"{first}\":{},\"{second}\":{}}}",
                        event.args[0], event.args[1]
                    )?;
                }
            }
            write!(out, "}}")?;
        }
        write!(out, "\n],\"displayTimeUnit\":\"ms\",\"otherData\":{{")?;
        for (name, text) in about {
            write!(out, "{}:{},", Quoted(name), Quoted(text))?;
        }
        // Numbers as texts: some viewers take nothing else here.
        writeln!(
            out,
            "\"seconds\":\"{:.6}\",\"events\":\"{}\",\"dropped_events\":\"{}\",\"clock\":\"{}\",\"clock_read_ns\":\"{:.1}\"}}}}",
            self.seconds,
            self.events.len(),
            self.dropped,
            self.clock,
            self.clock_cost,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::buffers::Event;
    use serde_json::{Value, json};

    fn recorded(events: Vec<Event>) -> Recorded {
        Recorded {
            events,
            lanes: vec!["main".into(), "wellread-0 \"\\\n\u{7}é".into()],
            labels: vec!["parquet 16 2".into()],
            seconds: 1.5,
            dropped: 3,
            clock: "monotonic clock",
            clock_cost: 21.04,
        }
    }

    fn written(recorded: &Recorded, about: &[(&str, &str)]) -> Value {
        let mut out = vec![];
        recorded.write(&mut out, about).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn the_file_is_json_as_chrome_has_it() {
        let event = |kind, lane, start, end, label, args| Event { start, end, args, lane, label, kind };
        let found = written(
            &recorded(vec![
                event(Kind::Turn, 0, 5, 9_000_001_234, 1, [2, 0]),
                event(Kind::Read, 1, 1_000, 1_999, 0, [u64::MAX, 7]),
                event(Kind::WaitRoom, 1, 2_000, 2_000, 0, [1, 1]),
            ]),
            &[("command", "wellread bench \"x\\y\"\t"), ("version", "0.1.0")],
        );
        let process = std::process::id();
        let named = |what: &str, tid: u32, name: &str| json!({"name": what, "ph": "M", "pid": process, "tid": tid, "args": {"name": name}});
        let events = found["traceEvents"].as_array().unwrap();
        assert_eq!(events[0], named("process_name", 0, "wellread"));
        assert_eq!(events[1], named("thread_name", 1, "main"));
        assert_eq!(events[2], named("thread_name", 2, "wellread-0 \"\\\n\u{7}é"));
        let turn = json!({"name": "parquet 16 2", "cat": "benchmark", "ph": "X", "pid": process, "tid": 1, "ts": 0.005, "dur": 9_000_001.229, "args": {"round": 2, "dropped_events": 0}});
        assert_eq!(events[3], turn);
        let read = json!({"name": "read", "cat": "file", "ph": "X", "pid": process, "tid": 2, "ts": 1.0, "dur": 0.999, "args": {"bytes": u64::MAX}});
        assert_eq!(events[4], read);
        let wait = json!({"name": "wait for room", "cat": "wait", "ph": "X", "pid": process, "tid": 2, "ts": 2.0, "dur": 0.0});
        assert_eq!(events[5], wait);
        assert_eq!(events.len(), 6);
        let other = &found["otherData"];
        assert_eq!(other["command"], "wellread bench \"x\\y\"\t");
        assert_eq!((&other["events"], &other["dropped_events"]), (&json!("3"), &json!("3")));
        assert_eq!((&other["seconds"], &other["clock_read_ns"]), (&json!("1.500000"), &json!("21.0")));
    }

    #[test]
    fn an_empty_recording_is_a_file_too() {
        let found = written(&recorded(vec![]), &[]);
        assert_eq!(found["traceEvents"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn kinds_differ_in_name_and_are_listed_in_order() {
        let mut names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        assert!(Kind::ALL.iter().enumerate().all(|(i, kind)| *kind as usize == i));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Kind::ALL.len());
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        assert!(recorded(vec![]).write(&mut Full, &[]).is_err());
    }
}
