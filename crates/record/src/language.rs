//! Languages and directions of texts.

use oaimend_oai::named_enum;

named_enum! {
    /// The direction in which a text is written: the values of the `dir` attribute of HTML.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Direction {
        /// Left to right.
        LeftToRight = "ltr",
        /// Right to left.
        RightToLeft = "rtl",
        /// The text has no letters, or as many of one direction as of the other.
        Auto = "auto",
    }
}

/// The number of characters that decide the direction of a text.
const DIRECTION_CHARS_MAX: usize = 1_000;

/// The direction of most letters of a text. `dir="auto"` of HTML looks at the first letter only, which is wrong for an
/// Arabic title that begins with a Latin abbreviation.
pub(crate) fn direction_of(text: &str) -> Direction {
    let letters = text.chars().take(DIRECTION_CHARS_MAX).filter(|character| character.is_alphabetic());
    let (mut left, mut right) = (0_usize, 0_usize);
    for letter in letters {
        *(if is_right_to_left(letter) { &mut right } else { &mut left }) += 1;
    }
    match left.cmp(&right) {
        std::cmp::Ordering::Greater => Direction::LeftToRight,
        std::cmp::Ordering::Less => Direction::RightToLeft,
        std::cmp::Ordering::Equal => Direction::Auto,
    }
}

/// The blocks of Unicode for scripts that are written from right to left.
const fn is_right_to_left(letter: char) -> bool {
    matches!(letter,
        '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFF}'
        | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}')
}

/// Longest language tag, in bytes (RFC 5646, section 4.4.1).
const TAG_BYTES_MAX: usize = 35;

/// The language tag (RFC 5646) that a text names, such as `pt-BR` for `pt_BR`, or `de` for `ger`. `None` for a text
/// that is no tag, such as `English`. Codes of three letters become the code of two letters, as the RFC requires.
pub fn language_tag(text: &str) -> Option<String> {
    let text = text.trim();
    if text.len() > TAG_BYTES_MAX {
        return None;
    }
    let mut parts = text.split(['-', '_']);
    let mut tag = parts.next().filter(|part| (2..=3).contains(&part.len()))?.to_ascii_lowercase();
    if !tag.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    if let Some(code) = two_letter_code(&tag) {
        tag = code.to_owned();
    }
    for part in parts {
        let is_subtag =
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_subtag {
            return None;
        }
        tag.push('-');
        match part.len() {
            2 => tag.push_str(&part.to_ascii_uppercase()),
            _ => tag.push_str(part),
        }
    }
    Some(tag)
}

fn two_letter_code(code: &str) -> Option<&'static str> {
    let (pairs, _) = TWO_LETTER_CODES.as_bytes().as_chunks::<PAIR_BYTES>();
    let place = pairs.binary_search_by(|pair| pair.split_at(3).0.cmp(code.as_bytes())).ok()?;
    std::str::from_utf8(pairs.get(place)?.get(4..6)?).ok()
}

/// The length of a pair with the blank after it, in bytes.
const PAIR_BYTES: usize = 7;
/// The codes of ISO 639-2 for languages with a code in ISO 639-1, sorted. Twenty languages have two codes.
const TWO_LETTER_CODES: &str = "\
    aar=aa abk=ab afr=af aka=ak alb=sq amh=am ara=ar arg=an arm=hy asm=as ava=av ave=ae aym=ay aze=az bak=ba \
    bam=bm baq=eu bel=be ben=bn bis=bi bod=bo bos=bs bre=br bul=bg bur=my cat=ca ces=cs cha=ch che=ce chi=zh \
    chu=cu chv=cv cor=kw cos=co cre=cr cym=cy cze=cs dan=da deu=de div=dv dut=nl dzo=dz ell=el eng=en epo=eo \
    est=et eus=eu ewe=ee fao=fo fas=fa fij=fj fin=fi fra=fr fre=fr fry=fy ful=ff geo=ka ger=de gla=gd gle=ga \
    glg=gl glv=gv gre=el grn=gn guj=gu hat=ht hau=ha hbs=sh heb=he her=hz hin=hi hmo=ho hrv=hr hun=hu hye=hy \
    ibo=ig ice=is ido=io iii=ii iku=iu ile=ie ina=ia ind=id ipk=ik isl=is ita=it jav=jv jpn=ja kal=kl kan=kn \
    kas=ks kat=ka kau=kr kaz=kk khm=km kik=ki kin=rw kir=ky kom=kv kon=kg kor=ko kua=kj kur=ku lao=lo lat=la \
    lav=lv lim=li lin=ln lit=lt ltz=lb lub=lu lug=lg mac=mk mah=mh mal=ml mao=mi mar=mr may=ms mkd=mk mlg=mg \
    mlt=mt mon=mn mri=mi msa=ms mya=my nau=na nav=nv nbl=nr nde=nd ndo=ng nep=ne nld=nl nno=nn nob=nb nor=no \
    nya=ny oci=oc oji=oj ori=or orm=om oss=os pan=pa per=fa pli=pi pol=pl por=pt pus=ps que=qu roh=rm ron=ro \
    rum=ro run=rn rus=ru sag=sg san=sa sin=si slk=sk slo=sk slv=sl sme=se smo=sm sna=sn snd=sd som=so sot=st \
    spa=es sqi=sq srd=sc srp=sr ssw=ss sun=su swa=sw swe=sv tah=ty tam=ta tat=tt tel=te tgk=tg tgl=tl tha=th \
    tib=bo tir=ti ton=to tsn=tn tso=ts tuk=tk tur=tr twi=tw uig=ug ukr=uk urd=ur uzb=uz ven=ve vie=vi vol=vo \
    wel=cy wln=wa wol=wo xho=xh yid=yi yor=yo zha=za zho=zh zul=zu ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_the_form_of_rfc_5646() {
        for (text, tag) in [
            ("en", Some("en")),
            (" EN ", Some("en")),
            ("en_us", Some("en-US")),
            ("ger", Some("de")),
            ("DEU", Some("de")),
            ("per", Some("fa")),
            ("mul", Some("mul")),
            ("zh-Hant-tw", Some("zh-Hant-TW")),
            ("English", None),
            ("e", None),
            ("en\"onload=x", None),
            ("en-", None),
            ("en-\u{660}", None),
            ("12", None),
            ("", None),
            ("en-aaaaaaaa-bbbbbbbb-cccccccc-dddddddd", None),
        ] {
            assert_eq!(language_tag(text).as_deref(), tag, "{text}");
        }
    }

    #[test]
    fn all_codes_are_found() {
        let pairs: Vec<&str> = TWO_LETTER_CODES.split_ascii_whitespace().collect();
        assert!(pairs.is_sorted() && TWO_LETTER_CODES.len() == pairs.len() * PAIR_BYTES);
        for pair in pairs {
            assert_eq!(pair.split_once('='), two_letter_code(&pair[..3]).map(|code| (&pair[..3], code)));
        }
        assert_eq!([two_letter_code("en"), two_letter_code("aaa"), two_letter_code("zzz")], [None; 3]);
    }

    #[test]
    fn the_direction_is_that_of_most_letters() {
        for (text, direction) in [
            ("Harbour songs", Direction::LeftToRight),
            ("أغاني الميناء", Direction::RightToLeft),
            ("DNA: دراسة في علم الوراثة", Direction::RightToLeft),
            ("שלום (peace, as a greeting)", Direction::LeftToRight),
            ("1890-1914", Direction::Auto),
            ("", Direction::Auto),
        ] {
            assert_eq!(direction_of(text), direction, "{text}");
        }
    }
}
