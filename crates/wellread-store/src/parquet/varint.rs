//! Whole numbers in as many bytes as they need, seven bits each: those of page headers and of pages of differences.

/// A number of the bytes that `next` gives, and `unended` where none of ten ends it.
pub(super) fn unsigned<E>(mut next: impl FnMut() -> Result<u8, E>, unended: E) -> Result<u64, E> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = next()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(unended)
}

/// The signed number that stands for another in zigzag: 0, -1, 1, -2 for 0, 1, 2, 3.
pub(super) fn signed(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<u64, &'static str> {
        let mut bytes = bytes.iter().copied();
        unsigned(|| bytes.next().ok_or("too few bytes"), "no end")
    }

    #[test]
    fn numbers_end_at_a_byte_below_128() {
        assert_eq!([read(&[5]), read(&[0xac, 2, 9]), read(&[0x80])], [Ok(5), Ok(300), Err("too few bytes")]);
        let largest = [[0xff; 9].as_slice(), &[1]].concat();
        assert_eq!((read(&largest), read(&[0xff; 11])), (Ok(u64::MAX), Err("no end")));
    }

    #[test]
    fn signs_alternate() {
        assert_eq!([0, 1, 2, 3, u64::MAX].map(signed), [0, -1, 1, -2, i64::MIN]);
    }
}
