//! LiveCodeBench packs the hidden tests of a row: base64 of zlib of a pickle of one string of JSON.
//!
//! Nothing is unpickled: only the few opcodes that a lone string has are read, everything else is refused.

use std::io::Read;

use super::Problem;
use super::rows::MAX_ROW_BYTES;
use crate::runner::value::Value;

/// The value that a string stands for: JSON as it is, or packed; what is neither stays the string.
pub(super) fn unpacked(text: &str, key: &str) -> Result<Value, Problem> {
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed.starts_with(['[', '{']) {
        return Ok(Value::Str(text.to_owned()));
    }
    let refused = || Problem::unusable(key, "neither JSON nor base64 of zlib of a pickled string");
    let packed = base64(trimmed).ok_or_else(refused)?;
    let mut pickle = Vec::new();
    let unpacker = flate2::bufread::ZlibDecoder::new(&*packed);
    unpacker.take(MAX_ROW_BYTES + 1).read_to_end(&mut pickle).map_err(|_| refused())?;
    if pickle.len() as u64 > MAX_ROW_BYTES {
        return Err(Problem::TooLong);
    }
    Ok(Value::Str(pickled_text(&pickle).ok_or_else(refused)?.to_owned()))
}

/// The string of a pickle that holds nothing else.
fn pickled_text(mut bytes: &[u8]) -> Option<&str> {
    let mut text = None;
    loop {
        let (opcode, rest) = bytes.split_first()?;
        bytes = match (*opcode, text) {
            (0x80, None) => rest.get(1..)?,             // PROTO, a version
            (0x95, None) => rest.get(8..)?,             // FRAME, a length
            (b'X', None) => sized(rest, 4, &mut text)?, // BINUNICODE
            (0x8c, None) => sized(rest, 1, &mut text)?, // SHORT_BINUNICODE
            (0x8d, None) => sized(rest, 8, &mut text)?, // BINUNICODE8
            (0x94, Some(_)) => rest,                    // MEMOIZE
            (b'q', Some(_)) => rest.get(1..)?,          // BINPUT
            (b'.', Some(found)) => return str::from_utf8(found).ok(),
            _ => return None,
        };
    }
}

/// Takes a length of so many bytes, low ones first, and that many bytes; gives what follows.
fn sized<'a>(bytes: &'a [u8], width: usize, text: &mut Option<&'a [u8]>) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_at_checked(width)?;
    let length = length
        .iter()
        .rev()
        .try_fold(0usize, |sum, byte| sum.checked_mul(256)?.checked_add(usize::from(*byte)))?;
    let (found, rest) = rest.split_at_checked(length)?;
    *text = Some(found);
    Some(rest)
}

/// The bytes that base64 stands for; line ends are skipped.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.trim_end_matches('=').bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_bytes_stop_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..60), start in 0usize..4) {
            let starts: [&[u8]; 4] = [b"", b"\x80\x02X", b"\x80\x04\x95\0\0\0\0\0\0\0\0\x8d", b"\x8c"];
            let pickle = [starts[start], &*bytes].concat();
            let _ = pickled_text(&pickle);
            let text = String::from_utf8_lossy(&bytes);
            let _ = (base64(&text), unpacked(&text, "key"));
        }
    }

    #[test]
    fn only_a_lone_string_is_read_from_a_pickle() {
        // pickle.dumps("[1]") of protocols 2 and 4
        assert_eq!(pickled_text(b"\x80\x02X\x03\x00\x00\x00[1]q\x00."), Some("[1]"));
        assert_eq!(
            pickled_text(b"\x80\x04\x95\x07\x00\x00\x00\x00\x00\x00\x00\x8c\x03[1]\x94."),
            Some("[1]")
        );
        // pickle.dumps(print): a name to import
        assert_eq!(pickled_text(b"\x80\x02cbuiltins\nprint\nq\x00."), None);
        assert_eq!(pickled_text(b"\x80\x02X\xff\xff\xff\xff[1]q\x00."), None);
        assert_eq!(pickled_text(b"\x80\x02X\x03\x00\x00\x00[1]"), None);
    }

    #[test]
    fn base64_is_read_as_others_write_it() {
        assert_eq!(base64("aGVsbG8=").as_deref(), Some(b"hello".as_slice()));
        assert_eq!(base64("aGVs\nbG8h/+8=").as_deref(), Some(b"hello!\xff\xef".as_slice()));
        assert_eq!(base64("a-b"), None);
    }
}
