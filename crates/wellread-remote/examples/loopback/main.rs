//! A link to measure by, and one that fails: for tests and benchmarks only.
//!
//! ```text
//!  client ─▶ loopback serve FOLDER   buckets are folders, keys are files: GET with ranges, HEAD, lists, as S3 has them
//!  client ─▶ loopback proxy URL ───▶ any server
//!               │
//!               ├─ pace: latency of each request, bandwidth of all together
//!               └─ faults, by a seed: 500, 503, cut and short bodies, stalls, wrong ranges
//! ```
//!
//! It prints its URL, and ends when its standard input does, so that none is left over. `POST /loopback/set?latency_ms=20&mbit=1000` changes
//! what the options say, `GET /loopback/stats` tells what was asked for. The standard library alone is enough to build it:
//! `rustc --edition 2024 -O main.rs`.

mod faults;
mod http;
mod pace;
mod proxy;
mod serve;

use faults::Fault;
use http::{Answer, Request};
use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const USAGE: &str = "usage: loopback serve FOLDER | proxy URL [--port N] [--latency-ms MS] [--mbit MBIT] [--faults SHARE] \
                     [--seed N] [--kinds 500,503,cut,short,stall,range] [--stall-s SECONDS]";

/// Where answers come from.
enum Source {
    Folder(PathBuf),
    /// Host and port.
    Server(String),
}

/// The state that all connections share.
struct Shared {
    source: Source,
    pace: pace::Pace,
    faults: faults::Faults,
    requests: AtomicU64,
    bytes: AtomicU64,
}

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    match run(&given) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("loopback: {why}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(given: &[String]) -> Result<(), String> {
    let [mode, source, options @ ..] = given else { return Err("a mode and a source are wanted".into()) };
    let source = match mode.as_str() {
        "serve" => Source::Folder(source.into()),
        "proxy" => Source::Server(
            source
                .strip_prefix("http://")
                .ok_or("a URL begins with http://")?
                .trim_end_matches('/')
                .to_owned(),
        ),
        _ => return Err(format!("there is no mode {mode}")),
    };
    let shared = Shared {
        source,
        pace: pace::Pace::default(),
        faults: faults::Faults::default(),
        requests: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    };
    let mut port = 0;
    for pair in options.chunks(2) {
        let [name, value] = pair else { return Err("an option has a value".into()) };
        let name = name.strip_prefix("--").ok_or("an option begins with --")?.replace('-', "_");
        if name == "port" {
            port = value.parse().map_err(|_| format!("{value} is no port"))?;
        } else {
            set(&shared, &name, value)?;
        }
    }
    let listener = TcpListener::bind(("127.0.0.1", port)).map_err(|e| e.to_string())?;
    let at = listener.local_addr().map_err(|e| e.to_string())?;
    println!("http://{at}");
    io::stdout().flush().map_err(|e| e.to_string())?;
    std::thread::spawn(|| {
        // The process that started it is gone.
        let _ = io::stdin().read_to_end(&mut vec![]);
        std::process::exit(0);
    });
    let shared = Arc::new(shared);
    for connection in listener.incoming().flatten() {
        let shared = Arc::clone(&shared);
        std::thread::spawn(move || serve_connection(&connection, &shared));
    }
    Ok(())
}

/// Changes one of the options.
fn set(shared: &Shared, name: &str, value: &str) -> Result<(), String> {
    let number = || value.parse::<f64>().map_err(|_| format!("{value} is no number"));
    match name {
        "latency_ms" => shared.pace.set_latency(number()? / 1e3),
        "mbit" => shared.pace.set_bandwidth(number()? * 1e6 / 8.0),
        "faults" => shared.faults.set_share(number()?),
        "seed" => shared.faults.set_seed(value.parse().map_err(|_| format!("{value} is no seed"))?),
        "stall_s" => shared.faults.set_stall(number()?),
        "kinds" => shared.faults.set_kinds(value)?,
        _ => return Err(format!("there is no option {name}")),
    }
    Ok(())
}

/// Answers the requests of a connection until it ends.
fn serve_connection(connection: &TcpStream, shared: &Shared) {
    let _ = connection.set_nodelay(true);
    let mut reader = BufReader::new(connection);
    let mut upstream = None;
    // The handshake is a way there and back, too.
    shared.pace.wait_for_latency();
    while let Ok(Some(request)) = http::read_request(&mut reader) {
        let done = if request.path.starts_with("/loopback/") {
            send(connection, &request, &control(shared, &request), None, None)
        } else {
            shared.requests.fetch_add(1, Ordering::Relaxed);
            let fault = shared.faults.of(&request);
            shared.pace.wait_for_latency();
            let answer = match (&fault, &shared.source) {
                (Some(Fault::Status(status)), _) => Ok(Fault::answer(*status)),
                (_, Source::Folder(folder)) => Ok(serve::answer(folder, &request)),
                (_, Source::Server(host)) => proxy::answer(host, &mut upstream, &request),
            };
            answer.and_then(|answer| send(connection, &request, &answer, fault, Some(shared)))
        };
        if done.is_err() {
            return;
        }
    }
}

fn control(shared: &Shared, request: &Request) -> Answer {
    if request.path == "/loopback/set" {
        for (name, value) in &request.query {
            if let Err(why) = set(shared, name, value) {
                return Answer::text(400, "text/plain", why);
            }
        }
    }
    let stats = format!(
        "{{\"requests\": {}, \"bytes\": {}, \"faults\": {}}}",
        shared.requests.load(Ordering::Relaxed),
        shared.bytes.load(Ordering::Relaxed),
        shared.faults.count()
    );
    Answer::text(200, "application/json", stats)
}

/// Sends an answer, at the link's pace and with its fault. An error ends the connection.
fn send(
    mut connection: &TcpStream,
    request: &Request,
    answer: &Answer,
    fault: Option<Fault>,
    shared: Option<&Shared>,
) -> io::Result<()> {
    const AT_ONCE: usize = 64 << 10;
    let mut body = if request.method == "HEAD" { &[][..] } else { &answer.body[..] };
    let mut length = answer.length.unwrap_or(answer.body.len() as u64);
    let mut shift = 0;
    match fault {
        Some(Fault::Short) => {
            body = &body[..body.len() / 2];
            length = body.len() as u64;
        }
        Some(Fault::Range) => shift = 1,
        _ => {}
    }
    let stops = matches!(fault, Some(Fault::Cut | Fault::Stall(_)));
    let sent = if stops { &body[..body.len() / 2] } else { body };
    connection.write_all(answer.head(length, shift).as_bytes())?;
    for part in sent.chunks(AT_ONCE) {
        if let Some(shared) = shared {
            shared.pace.wait_for_bytes(part.len());
            shared.bytes.fetch_add(part.len() as u64, Ordering::Relaxed);
        }
        connection.write_all(part)?;
    }
    if let Some(Fault::Stall(seconds)) = fault {
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }
    if stops { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
}
