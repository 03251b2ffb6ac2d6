//! A record of each format, as repositories write them.

use crate::agent::AgentKind;
use crate::document::RecordDocument;
use crate::dublin_core::DublinCore;
use crate::text::Text;
use crate::work::WorkDescription;

fn work(payload: &str) -> WorkDescription {
    let xml = format!("<record><metadata>{payload}</metadata></record>");
    WorkDescription::of(&RecordDocument::read(&xml).expect("the record is well-formed"))
}

fn values(texts: &[Text]) -> Vec<&str> {
    texts.iter().map(|text| text.value.as_str()).collect()
}

/// All fields that are not empty, such as `title: A | B`.
fn shown(work: &WorkDescription) -> Vec<String> {
    let fields = work.core.fields().into_iter().filter(|(_, texts)| !texts.is_empty());
    fields.map(|(name, texts)| format!("{name}: {}", values(texts).join(" | "))).collect()
}

/// The agents, with `p` or `o` for their kind, and the end of their ORCIDs.
fn agents(agents: &[crate::agent::Agent]) -> Vec<String> {
    let shown = agents.iter().map(|agent| {
        let kind = match agent.kind {
            AgentKind::Person => "p",
            AgentKind::Organization => "o",
            AgentKind::Unknown => "?",
        };
        let orcid = agent.orcid.as_ref().map(|orcid| orcid.url().split_off("https://orcid.org/".len()));
        format!("{kind} {} {}", agent.name.value, orcid.unwrap_or_default()).trim().to_owned()
    });
    shown.collect()
}

/// Title, volume, issue, pages, ISSNs and ISBNs.
fn container(work: &WorkDescription) -> String {
    let found = &work.container;
    let parts = [found.title.clone(), found.volume.clone(), found.issue.clone(), found.pages("-")];
    format!(
        "{}|{}|{}",
        parts.map(Option::unwrap_or_default).join("|"),
        found.issns.join(","),
        work.isbns.join(",")
    )
}

#[test]
fn dublin_core_is_found_by_namespace_and_not_by_prefix() {
    let work = work(
        "<x:dc xmlns:x='http://www.openarchives.org/OAI/2.0/oai_dc/' xmlns:y='http://purl.org/dc/elements/1.1/' \
         xmlns:dc='urn:other'><y:title xml:lang='ger'> A\n  b </y:title><dc:title>no</dc:title><y:title/>\
         <y:creator>C, D</y:creator><y:description>e\n\nf</y:description>\
         <title xmlns='http://purl.org/dc/elements/1.1/'>G</title></x:dc>",
    );
    assert_eq!(shown(&work), ["title: A b | G", "creator: C, D", "description: e\n\nf"]);
    assert_eq!(work.core.titles.first().and_then(|title| title.language.as_deref()), Some("de"));
}

#[test]
fn all_elements_of_dublin_core_are_fields() {
    let names = DublinCore::default().fields().map(|(name, _)| name);
    let elements: String = names.iter().map(|name| format!("<{name}>{name}</{name}>")).collect();
    let work = work(&format!("<a xmlns='http://purl.org/dc/elements/1.1/'>{elements}</a>"));
    assert_eq!(shown(&work), names.map(|name| format!("{name}: {name}")));
}

#[test]
fn qualified_dublin_core_is_read_too() {
    let work = work(
        "<q xmlns:t='http://purl.org/dc/terms/' xmlns:dc='http://purl.org/dc/elements/1.1/'><t:created>1999</t:created>\
         <t:issued>2001</t:issued><t:abstract>a</t:abstract><t:extent>9 p.</t:extent><dc:coverage>x</dc:coverage>\
         <t:spatial>y</t:spatial><t:bibliographicCitation>Journal of X, 12(3), 45-67</t:bibliographicCitation>\
         <t:provenance>no</t:provenance></q>",
    );
    let expected = [
        "description: a",
        "date: 2001 | 1999",
        "format: 9 p.",
        "source: Journal of X, 12(3), 45-67",
        "coverage: x | y",
    ];
    assert_eq!(
        (shown(&work), container(&work)),
        (expected.map(str::to_owned).to_vec(), "Journal of X|12|3|45-67||".to_owned())
    );
}

#[test]
fn orcids_of_dublin_core_belong_to_names_where_that_is_certain() {
    let agents_of = |creators: &[&str]| {
        let fields: String = creators.iter().map(|creator| format!("<creator>{creator}</creator>")).collect();
        let work = work(&format!("<a xmlns='http://purl.org/dc/elements/1.1/'>{fields}</a>"));
        assert_eq!(work.core.creators.len(), work.creators.len());
        (agents(&work.creators), work.orcids.len())
    };
    let (one, other) = ("https://orcid.org/0000-0002-1825-0097", "0000-0002-1694-233X");
    let [a, b] = ["? A", "? B"].map(str::to_owned);
    let [a1, b2] = ["p A 0000-0002-1825-0097", "p B 0000-0002-1694-233X"].map(str::to_owned);
    assert_eq!(agents_of(&["A", one]), (vec![a1.clone()], 0));
    assert_eq!(agents_of(&["A", one, "B", other]), (vec![a1, b2.clone()], 0));
    assert_eq!(agents_of(&["A", "B", one]), (vec![a.clone(), b.clone()], 1));
    assert_eq!(agents_of(&["A", "B", one, other]), (vec![a.clone(), b], 2));
    assert_eq!(agents_of(&["A", "B (ORCID 0000-0002-1694-233X)", one]), (vec![a, b2], 1));
    assert_eq!(agents_of(&[one]), (vec![], 1));
    let attribute = work(
        "<a xmlns='http://purl.org/dc/elements/1.1/'><creator id='https://orcid.org/0000-0002-1694-233X'>B</creator></a>",
    );
    assert_eq!(agents(&attribute.creators), ["p B 0000-0002-1694-233X"]);
}

#[test]
fn marcxml_is_read() {
    let work = work(
        "<m:record xmlns:m='http://www.loc.gov/MARC21/slim'><m:leader>00000nab a2200000 a 4500</m:leader>\
         <m:controlfield tag='008'>010203s2001    gw            000 0 ger d</m:controlfield>\
         <m:datafield tag='020' ind1=' ' ind2=' '><m:subfield code='a'>978-3-16-148410-0 (pbk.)</m:subfield></m:datafield>\
         <m:datafield tag='024' ind1='7' ind2=' '><m:subfield code='a'>10.1000/1</m:subfield><m:subfield code='2'>doi</m:subfield></m:datafield>\
         <m:datafield tag='100' ind1='1' ind2=' '><m:subfield code='a'>Doe, Jane,</m:subfield><m:subfield code='0'>(orcid)0000-0002-1825-0097</m:subfield></m:datafield>\
         <m:datafield tag='245' ind1='0' ind2='0'><m:subfield code='a'>Main :</m:subfield><m:subfield code='b'>sub /</m:subfield><m:subfield code='c'>J. Doe</m:subfield></m:datafield>\
         <m:datafield tag='264' ind1=' ' ind2='1'><m:subfield code='b'>Publisher,</m:subfield><m:subfield code='c'>[2001]</m:subfield></m:datafield>\
         <m:datafield tag='520' ind1=' ' ind2=' '><m:subfield code='a'>Abstract</m:subfield></m:datafield>\
         <m:datafield tag='650' ind1=' ' ind2='0'><m:subfield code='a'>Cats</m:subfield><m:subfield code='x'>History</m:subfield></m:datafield>\
         <m:datafield tag='651' ind1=' ' ind2='0'><m:subfield code='a'>Bonn</m:subfield></m:datafield>\
         <m:datafield tag='700' ind1='1' ind2=' '><m:subfield code='a'>Roe, R.</m:subfield></m:datafield>\
         <m:datafield tag='700' ind1='1' ind2=' '><m:subfield code='a'>Ed, E.</m:subfield><m:subfield code='4'>edt</m:subfield></m:datafield>\
         <m:datafield tag='700' ind1='1' ind2='2'><m:subfield code='a'>Old, O.</m:subfield><m:subfield code='t'>Work</m:subfield></m:datafield>\
         <m:datafield tag='710' ind1='2' ind2=' '><m:subfield code='a'>Institute</m:subfield></m:datafield>\
         <m:datafield tag='773' ind1='0' ind2=' '><m:subfield code='t'>Journal,</m:subfield><m:subfield code='g'>Vol. 24, no. 9 (2001), p. 235-248</m:subfield><m:subfield code='x'>0378-5955</m:subfield></m:datafield>\
         <m:datafield tag='856' ind1='4' ind2='0'><m:subfield code='u'>https://e.org/1</m:subfield><m:subfield code='z'>Full text</m:subfield></m:datafield>\
         <m:datafield tag='856' ind1='4' ind2='2'><m:subfield code='u'>https://e.org/toc.pdf</m:subfield></m:datafield></m:record>",
    );
    assert_eq!(
        shown(&work),
        [
            "title: Main : sub",
            "creator: Doe, Jane | Roe, R.",
            "subject: Cats--History",
            "description: Abstract",
            "publisher: Publisher",
            "contributor: Ed, E. | Institute",
            "date: [2001]",
            "type: Article",
            "identifier: urn:isbn:9783161484100 | 10.1000/1 | https://e.org/1",
            "source: Journal, Vol. 24, no. 9 (2001), p. 235-248",
            "language: ger",
            "relation: https://e.org/toc.pdf",
            "coverage: Bonn",
        ]
    );
    assert_eq!(agents(&work.creators), ["p Doe, Jane 0000-0002-1825-0097", "p Roe, R."]);
    assert_eq!(agents(&work.contributors), ["p Ed, E.", "o Institute"]);
    assert_eq!(container(&work), "Journal|24|9|235-248|0378-5955|9783161484100");
    assert_eq!(work.published.map(|date| date.year()), Some(2001));
    assert_eq!(
        work.links.full_texts.iter().map(|link| link.url.as_str()).collect::<Vec<_>>(),
        ["https://e.org/1"]
    );
}

#[test]
fn mods_is_read() {
    let work = work(
        "<modsCollection xmlns='http://www.loc.gov/mods/v3' xmlns:xlink='http://www.w3.org/1999/xlink'><mods>\
         <titleInfo type='alternative'><title>Other</title></titleInfo>\
         <titleInfo><nonSort>The</nonSort><title>Title</title><subTitle>Sub</subTitle></titleInfo>\
         <name type='personal'><namePart type='given'>Jane</namePart><namePart type='family'>Doe</namePart>\
         <nameIdentifier type='orcid'>https://orcid.org/0000-0002-1825-0097</nameIdentifier>\
         <role><roleTerm type='code'>aut</roleTerm></role></name>\
         <name type='corporate'><namePart>Institute</namePart><role><roleTerm>sponsor</roleTerm></role></name>\
         <typeOfResource>text</typeOfResource><genre>article</genre>\
         <originInfo><publisher>P</publisher><dateIssued>May 2001</dateIssued>\
         <dateIssued encoding='w3cdtf'>2001-05</dateIssued></originInfo>\
         <language><languageTerm type='code'>eng</languageTerm></language><abstract>A</abstract>\
         <subject><topic>Cats</topic><topic>History</topic><geographic>Bonn</geographic></subject>\
         <relatedItem type='host'><titleInfo><title>Journal</title></titleInfo><identifier type='issn'>0378-5955</identifier>\
         <part><detail type='volume'><number>12</number></detail><detail type='issue'><number>3</number></detail>\
         <extent unit='pages'><start>45</start><end>67</end></extent></part></relatedItem>\
         <relatedItem type='series'><titleInfo><title>Series</title></titleInfo></relatedItem>\
         <identifier type='doi'>10.1000/1</identifier><identifier type='hdl'>1/2</identifier>\
         <identifier type='isbn'>9783161484100</identifier><identifier type='uri' invalid='yes'>no</identifier>\
         <location><url access='raw object'>https://e.org/get/1</url></location>\
         <accessCondition type='use and reproduction' xlink:href='https://creativecommons.org/licenses/by/4.0/'>CC BY\
         </accessCondition></mods></modsCollection>",
    );
    assert_eq!(
        shown(&work),
        [
            "title: The Title: Sub | Other",
            "creator: Doe, Jane",
            "subject: Cats--History",
            "description: A",
            "publisher: P",
            "contributor: Institute",
            "date: 2001-05 | May 2001",
            "type: text | article",
            "identifier: doi:10.1000/1 | hdl:1/2 | urn:isbn:9783161484100 | https://e.org/get/1",
            "source: Journal",
            "language: eng",
            "relation: Series",
            "coverage: Bonn",
            "rights: CC BY | https://creativecommons.org/licenses/by/4.0/",
        ]
    );
    assert_eq!(agents(&work.creators), ["p Doe, Jane 0000-0002-1825-0097"]);
    assert_eq!(agents(&work.contributors), ["o Institute"]);
    assert_eq!(container(&work), "Journal|12|3|45-67|0378-5955|9783161484100");
    assert!(work.is_open_access);
    assert_eq!(work.links.full_texts.first().map(|link| link.url.as_str()), Some("https://e.org/get/1"));
    assert_eq!(
        work.links.license.map(|link| link.url).as_deref(),
        Some("https://creativecommons.org/licenses/by/4.0/")
    );
}

const DATACITE: &str = "<resource xmlns='http://datacite.org/schema/kernel-4'>\
    <identifier identifierType='DOI'>10.1000/1</identifier><creators>\
    <creator><creatorName nameType='Personal'>Doe, Jane</creatorName><givenName>Jane</givenName>\
    <nameIdentifier nameIdentifierScheme='ORCID' schemeURI='https://orcid.org'>0000-0002-1825-0097</nameIdentifier></creator>\
    <creator><creatorName nameType='Organizational'>Institute</creatorName></creator></creators>\
    <titles><title titleType='Subtitle'>Sub</title><title xml:lang='de'>Titel</title></titles>\
    <publisher>P</publisher><publicationYear>2001</publicationYear>\
    <resourceType resourceTypeGeneral='JournalArticle'>Paper</resourceType>\
    <contributors><contributor contributorType='Editor'><contributorName>Ed, E.</contributorName></contributor></contributors>\
    <dates><date dateType='Created'>1999-01-01</date><date dateType='Issued'>2001-05-06</date></dates>\
    <relatedIdentifiers><relatedIdentifier relatedIdentifierType='ISSN' relationType='IsPartOf'>0378-5955</relatedIdentifier>\
    </relatedIdentifiers><rightsList><rights rightsURI='info:eu-repo/semantics/openAccess'>Open</rights></rightsList>\
    <descriptions><description descriptionType='Abstract'>A</description>\
    <description descriptionType='SeriesInformation'>Journal, 12(3), 45-67</description></descriptions>\
    <geoLocations><geoLocation><geoLocationPlace>Bonn</geoLocationPlace></geoLocation></geoLocations></resource>";

#[test]
fn datacite_is_read_also_in_its_wrapper() {
    let bare = work(DATACITE);
    assert_eq!(
        shown(&bare),
        [
            "title: Titel | Sub",
            "creator: Doe, Jane | Institute",
            "description: A",
            "publisher: P",
            "contributor: Ed, E.",
            "date: 2001-05-06 | 2001 | 1999-01-01",
            "type: JournalArticle | Paper",
            "identifier: 10.1000/1",
            "source: Journal, 12(3), 45-67",
            "relation: 0378-5955",
            "coverage: Bonn",
            "rights: info:eu-repo/semantics/openAccess | Open",
        ]
    );
    assert_eq!(agents(&bare.creators), ["p Doe, Jane 0000-0002-1825-0097", "o Institute"]);
    assert_eq!(container(&bare), "Journal|12|3|45-67|0378-5955|");
    assert!(bare.is_open_access);
    let wrapped = work(&format!(
        "<o:oai_datacite xmlns:o='http://schema.datacite.org/oai/oai-1.1/'><o:isReferenceQuality>true</o:isReferenceQuality>\
         <o:payload>{DATACITE}</o:payload></o:oai_datacite>"
    ));
    assert_eq!(wrapped, bare);
    let kernel_3 = work(&DATACITE.replace("kernel-4", "kernel-3"));
    assert_eq!(kernel_3, bare);
    let item = work(
        "<resource xmlns='http://datacite.org/schema/kernel-4'><relatedItems><relatedItem relatedItemType='Journal' \
         relationType='IsPublishedIn'><relatedItemIdentifier relatedItemIdentifierType='ISSN'>0378-5955</relatedItemIdentifier>\
         <titles><title>Journal</title></titles><volume>12</volume><issue>3</issue><firstPage>45</firstPage>\
         <lastPage>67</lastPage></relatedItem></relatedItems></resource>",
    );
    assert_eq!(container(&item), "Journal|12|3|45-67|0378-5955|");
}

#[test]
fn etd_ms_is_read() {
    let work = work(
        "<thesis xmlns='http://www.ndltd.org/standards/metadata/etdms/1.1/'><title>T</title><alternativeTitle>U</alternativeTitle>\
         <creator>Doe, Jane</creator><contributor role='advisor'>Roe, R.</contributor><date>2001-05-06</date>\
         <degree><name>PhD</name><discipline>History</discipline><grantor>University</grantor></degree></thesis>",
    );
    let expected = [
        "title: T | U",
        "creator: Doe, Jane",
        "subject: History",
        "publisher: University",
        "contributor: Roe, R.",
        "date: 2001-05-06",
        "type: Thesis",
    ];
    assert_eq!(shown(&work), expected);
}

#[test]
fn lido_is_read() {
    let work = work(
        "<l:lido xmlns:l='http://www.lido-schema.org'><l:lidoRecID l:type='local'>1</l:lidoRecID><l:descriptiveMetadata>\
         <l:objectClassificationWrap><l:objectWorkTypeWrap><l:objectWorkType><l:term>Painting</l:term></l:objectWorkType>\
         </l:objectWorkTypeWrap></l:objectClassificationWrap><l:objectIdentificationWrap><l:titleWrap><l:titleSet>\
         <l:appellationValue l:pref='alternate'>B</l:appellationValue><l:appellationValue l:pref='preferred'>A</l:appellationValue>\
         </l:titleSet></l:titleWrap></l:objectIdentificationWrap><l:eventWrap><l:eventSet><l:event><l:eventType>\
         <l:conceptID l:type='URI'>http://terminology.lido-schema.org/lido00007</l:conceptID></l:eventType><l:eventActor>\
         <l:actorInRole><l:actor l:type='person'><l:nameActorSet><l:appellationValue>Doe, Jane</l:appellationValue>\
         </l:nameActorSet></l:actor></l:actorInRole></l:eventActor><l:eventDate><l:displayDate>um 1900</l:displayDate><l:date>\
         <l:earliestDate>1899</l:earliestDate></l:date></l:eventDate></l:event></l:eventSet><l:eventSet><l:event><l:eventType>\
         <l:term>Find</l:term></l:eventType><l:eventActor><l:actorInRole><l:actor l:type='corporation'><l:nameActorSet>\
         <l:appellationValue>Museum</l:appellationValue></l:nameActorSet></l:actor></l:actorInRole></l:eventActor></l:event>\
         </l:eventSet></l:eventWrap><l:objectRelationWrap><l:subjectWrap><l:subjectSet><l:subject><l:subjectConcept>\
         <l:term>Cats</l:term></l:subjectConcept></l:subject></l:subjectSet></l:subjectWrap></l:objectRelationWrap>\
         </l:descriptiveMetadata><l:administrativeMetadata><l:recordWrap><l:recordInfoSet>\
         <l:recordInfoLink>https://e.org/1</l:recordInfoLink></l:recordInfoSet></l:recordWrap><l:resourceWrap><l:resourceSet>\
         <l:rightsResource><l:rightsType><l:conceptID>https://creativecommons.org/licenses/by/4.0/</l:conceptID></l:rightsType>\
         </l:rightsResource></l:resourceSet></l:resourceWrap></l:administrativeMetadata></l:lido>",
    );
    let expected = [
        "title: A | B",
        "creator: Doe, Jane",
        "subject: Cats",
        "contributor: Museum",
        "date: 1899 | um 1900",
        "type: Painting",
        "identifier: https://e.org/1",
        "rights: https://creativecommons.org/licenses/by/4.0/",
    ];
    assert_eq!(shown(&work), expected);
    assert_eq!(
        (agents(&work.creators), agents(&work.contributors)),
        (vec!["p Doe, Jane".into()], vec!["o Museum".into()])
    );
}

#[test]
fn edm_is_read() {
    let rdf = |content: &str| {
        work(&format!(
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:edm='http://www.europeana.eu/schemas/edm/' \
             xmlns:dc='http://purl.org/dc/elements/1.1/' xmlns:skos='http://www.w3.org/2004/02/skos/core#' \
             xmlns:ore='http://www.openarchives.org/ore/terms/'>{content}</rdf:RDF>"
        ))
    };
    let work = rdf(
        "<edm:ProvidedCHO rdf:about='#1'><dc:title xml:lang='en'>T</dc:title><dc:creator rdf:resource='#a'/>\
         <dc:subject rdf:resource='http://e.org/s'/><edm:type>TEXT</edm:type></edm:ProvidedCHO>\
         <edm:Agent rdf:about='#a'><skos:prefLabel>Doe, Jane</skos:prefLabel></edm:Agent>\
         <ore:Aggregation><edm:isShownAt rdf:resource='https://e.org/1'/><edm:isShownBy rdf:resource='https://e.org/full/1'/>\
         <edm:rights rdf:resource='http://creativecommons.org/publicdomain/mark/1.0/'/><edm:dataProvider>P</edm:dataProvider>\
         </ore:Aggregation>",
    );
    let expected = [
        "title: T",
        "creator: Doe, Jane",
        "subject: http://e.org/s",
        "publisher: P",
        "type: TEXT",
        "identifier: https://e.org/1 | https://e.org/full/1",
        "rights: http://creativecommons.org/publicdomain/mark/1.0/",
    ];
    assert_eq!(shown(&work), expected);
    assert_eq!(work.links.full_texts.first().map(|link| link.url.as_str()), Some("https://e.org/full/1"));
    assert_eq!(rdf("<rdf:Description><dc:title>x</dc:title></rdf:Description>").core, DublinCore::default());
}

#[test]
fn ead_is_read_in_all_versions() {
    let ead = |namespace: &str| {
        work(&format!(
            "<ead{namespace}><eadheader><eadid url='https://e.org/1'>E 1</eadid></eadheader><archdesc level='collection'><did>\
             <unittitle>Papers of <persname>Jane Doe</persname></unittitle><unitdate normal='1899/1950'>1899-1950</unitdate>\
             <origination><persname>Doe, Jane</persname><corpname>Institute</corpname></origination>\
             <langmaterial><language langcode='ger'>German</language></langmaterial><repository>Archive</repository></did>\
             <scopecontent><head>Scope</head><p>Letters</p></scopecontent><controlaccess><subject>Cats</subject>\
             <geogname>Bonn</geogname></controlaccess><dsc><c><did><unittitle>Letter</unittitle></did></c></dsc></archdesc></ead>"
        ))
    };
    let expected = [
        "title: Papers of Jane Doe",
        "creator: Doe, Jane | Institute",
        "subject: Cats",
        "description: Letters",
        "publisher: Archive",
        "date: 1899 | 1899-1950",
        "type: collection",
        "identifier: https://e.org/1 | E 1",
        "language: ger",
        "coverage: Bonn",
    ];
    for namespace in ["", " xmlns='urn:isbn:1-931666-22-9'", " xmlns='http://ead3.archivists.org/schema/'"] {
        let work = ead(namespace);
        assert_eq!(shown(&work), expected, "{namespace}");
        assert_eq!(agents(&work.creators), ["p Doe, Jane", "o Institute"]);
    }
    assert_eq!(ead(" xmlns='urn:other'").core, DublinCore::default());
}

#[test]
fn other_formats_have_no_fields() {
    let nested = "<a><dc:title xmlns:dc='http://purl.org/dc/elements/1.1/'>x</dc:title></a>";
    for payload in [
        format!("<b>{nested}</b>"),
        "<mods xmlns='urn:mods'><titleInfo><title>x</title></titleInfo></mods>".to_owned(),
        "<other xmlns='http://www.loc.gov/mods/v3'><titleInfo><title>x</title></titleInfo></other>"
            .to_owned(),
        String::new(),
    ] {
        assert!(work(&payload).core.is_empty(), "{payload}");
    }
}
