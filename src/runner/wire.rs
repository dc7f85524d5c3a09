//! Looks at the messages of a candidate before anything of the judge reads them.
//!
//! A message is plain data in a small part of version 2 of Python's `marshal` format: no code, no references,
//! nothing that is made by calling. Its reader allocates by the counts that it finds, so none may promise more
//! than the message has; and it recurses, so nothing may be nested deeper than values are.
//!
//! Source: the writer and reader of the format in CPython, Python/marshal.c; what the messages mean is in
//! `python/testgrad/_wire.py`.

/// The longest message.
pub const MOST_BYTES: usize = 64 << 20;
/// Each level of a value takes at most three here.
const DEEPEST: usize = 250;

/// Whether a message is what a candidate may say.
pub fn is_sound(message: &[u8]) -> bool {
    let mut rest = message;
    rest.first() == Some(&b'(') && walk(&mut rest).is_some() && rest.is_empty()
}

/// A container that is being read.
struct Open {
    /// How many items are still to begin; a mapping ends with a mark.
    left: Option<usize>,
    /// The next item is the key of a mapping.
    is_key: bool,
}

/// Reads one value; `None` when there is none, or one that may not be.
fn walk(rest: &mut &[u8]) -> Option<()> {
    let mut open: Vec<Open> = Vec::new();
    loop {
        let kind = take(rest, 1)?.first().copied()?;
        if kind == b'0' {
            open.pop().filter(|open| open.left.is_none() && open.is_key)?;
        } else {
            if let Some(around) = open.last_mut() {
                around.begin(kind)?;
            }
            match container(kind, rest)? {
                Some(_) if open.len() >= DEEPEST => return None,
                Some(container) => open.push(container),
                None => atom(kind, rest)?,
            }
        }
        while open.last().is_some_and(|open| open.left == Some(0)) {
            open.pop();
        }
        if open.is_empty() {
            return Some(());
        }
    }
}

impl Open {
    /// An item begins.
    fn begin(&mut self, kind: u8) -> Option<()> {
        match &mut self.left {
            Some(left) => *left = left.checked_sub(1)?,
            None if self.is_key && matches!(kind, b'[' | b'{' | b'<') => return None,
            None => self.is_key = !self.is_key,
        }
        Some(())
    }
}

/// The beginning of a container; `Some(None)` when it is none.
fn container(kind: u8, rest: &mut &[u8]) -> Option<Option<Open>> {
    match kind {
        b'(' | b'[' | b'<' | b'>' => {
            let left = count(rest)?;
            (left <= rest.len()).then_some(Some(Open { left: Some(left), is_key: false }))
        }
        b'{' => Some(Some(Open { left: None, is_key: true })),
        _ => Some(None),
    }
}

fn atom(kind: u8, rest: &mut &[u8]) -> Option<()> {
    let size = match kind {
        b'N' | b'T' | b'F' | b'.' | b'S' => 0,
        b'i' => 4,
        b'g' => 8,
        b'y' => 16,
        b's' | b'u' | b't' => count(rest)?,
        b'l' => {
            let digits = i32::from_le_bytes(*take(rest, 4)?.first_chunk()?).unsigned_abs() as usize;
            digits.checked_mul(2)?
        }
        _ => return None,
    };
    take(rest, size).map(drop)
}

fn count(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(i32::from_le_bytes(*take(rest, 4)?.first_chunk()?)).ok()
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sized(kind: u8, count: i32, body: &[u8]) -> Vec<u8> {
        [&[kind], count.to_le_bytes().as_slice(), body].concat()
    }

    fn message(item: &[u8]) -> Vec<u8> {
        sized(b'(', 1, item)
    }

    #[test]
    fn plain_values_are_sound() {
        let text = sized(b'u', 2, b"ab");
        let dict = [b"{".as_slice(), &text, b"[\0\0\0\0", &sized(b'(', 0, b""), b"N0"].concat();
        for item in [
            b"N".to_vec(),
            sized(b'i', 5, b""),
            sized(b'l', -2, b"\x01\0\x02\0"),
            [b"g".as_slice(), &1.5_f64.to_le_bytes()].concat(),
            text,
            dict,
            sized(b'[', 2, b"{0{0"),
            sized(b'<', 1, b"T"),
        ] {
            assert!(is_sound(&message(&item)), "{item:?}");
            assert!(!is_sound(&item), "{item:?}");
            assert!(!is_sound(&[message(&item), b"N".to_vec()].concat()), "{item:?}");
            assert!(!is_sound(&sized(b'(', 2, &item)), "{item:?}");
        }
    }

    #[test]
    fn what_is_more_than_data_is_not() {
        for item in [
            b"c".to_vec(),               // code
            sized(b'R', 0, b""),         // a reference
            sized(b'r', 0, b""),         // a reference
            vec![b'N' | 0x80],           // something to refer to
            sized(b'[', i32::MAX, b"N"), // a promise
            sized(b'[', -1, b"N"),       // a negative one
            sized(b's', i32::MAX, b"x"), // bytes that are not there
            sized(b'l', i32::MIN, b""),  // a number that is not there
            b"0".to_vec(),               // the end of a mapping that has not begun
            b"{N0".to_vec(),             // a key without a value
            b"{[\0\0\0\0N0".to_vec(),    // a key that is no key
            sized(b'[', 1, b"0"),        // the end of a mapping in a list
            b"f\x011".to_vec(),          // a number as text
            b"q".to_vec(),               // nothing
        ] {
            assert!(!is_sound(&message(&item)), "{item:?}");
        }
        assert!(!is_sound(b""));
    }

    #[test]
    fn depth_has_an_end() {
        let nested = |depth: usize| {
            let mut item = b"N".to_vec();
            for _ in 0..depth {
                item = message(&item);
            }
            item
        };
        assert!(is_sound(&nested(DEEPEST)));
        assert!(!is_sound(&nested(DEEPEST + 1)));
        assert!(!is_sound(&[b'('; 1 << 20]));
        assert!(!is_sound(&b"(\x01\0\0\0".repeat(1 << 16)));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_much(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = is_sound(&bytes);
            let _ = is_sound(&message(&bytes));
        }

        #[test]
        fn a_part_of_a_sound_message_is_none(cut in 0_usize..40) {
            let whole = sized(b'(', 2, &[sized(b'u', 20, &[b'x'; 20]), b"{NN0".to_vec()].concat());
            prop_assert!(is_sound(&whole));
            prop_assert_eq!(is_sound(whole.get(..cut.min(whole.len())).unwrap()), cut >= whole.len());
        }
    }
}
