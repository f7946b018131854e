//! Answers of another server.

use crate::http::{Answer, Request, read_answer};
use std::fmt::Write as _;
use std::io::{self, BufReader, Write as _};
use std::net::TcpStream;

/// The server's answer, over the connection that is kept for those of one client.
///
/// The `Host` stays the client's: requests are signed for it.
pub(crate) fn answer(
    host: &str,
    kept: &mut Option<BufReader<TcpStream>>,
    request: &Request,
) -> io::Result<Answer> {
    let had_one = kept.is_some();
    match once(host, kept, request) {
        // The server may have closed what was kept.
        Err(_) if had_one => {
            *kept = None;
            once(host, kept, request)
        }
        done => done,
    }
}

fn once(host: &str, kept: &mut Option<BufReader<TcpStream>>, request: &Request) -> io::Result<Answer> {
    let mut reader = if let Some(reader) = kept.take() {
        reader
    } else {
        let connection = TcpStream::connect(host)?;
        connection.set_nodelay(true)?;
        BufReader::new(connection)
    };
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.target);
    for (name, value) in &request.headers {
        let own = ["content-length", "transfer-encoding", "connection", "expect"];
        if !own.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            let _ = write!(head, "{name}: {value}\r\n");
        }
    }
    let _ = write!(head, "Content-Length: {}\r\n\r\n", request.body.len());
    let connection = reader.get_mut();
    connection.write_all(head.as_bytes())?;
    connection.write_all(&request.body)?;
    let answer = read_answer(&mut reader, &request.method)?;
    // A server that closes the connection may still take bytes of the next request, and never answer.
    *kept = (!answer.is_last).then_some(reader);
    Ok(answer)
}
