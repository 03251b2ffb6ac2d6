//! The elements of DataCite, LIDO and DDI that contain plain text, and those of their structure.
//!
//! [`Family`](crate::lex::known_namespaces::Family) uses them. A tag of HTML inside such a field is
//! text, unless the format has an element of that name for it.

/// Namespaces of DataCite and of OpenAIRE, whose records consist of elements of DataCite, begin with these.
const DATACITE: [&[u8]; 4] = [
    b"http://datacite.org/schema/",
    b"https://datacite.org/schema/",
    b"http://schema.datacite.org/",
    b"http://namespace.openaire.eu/schema/oaire",
];

/// Whether a namespace is one of DataCite or OpenAIRE. Many formats have a root with the name `resource`.
pub(crate) fn is_datacite(namespace: &[u8]) -> bool {
    DATACITE.iter().any(|start| namespace.starts_with(start))
}

/// Whether an element of DataCite 2 to 4, or of OpenAIRE 4, contains plain text.
pub(crate) fn is_datacite_field(local: &[u8]) -> bool {
    matches!(
        local,
        b"alternateIdentifier"
            | b"affiliation"
            | b"awardNumber"
            | b"awardTitle"
            | b"contributorName"
            | b"creatorName"
            | b"date"
            | b"description"
            | b"edition"
            | b"familyName"
            | b"firstPage"
            | b"format"
            | b"funderIdentifier"
            | b"funderName"
            | b"fundingStream"
            | b"geoLocationPlace"
            | b"givenName"
            | b"identifier"
            | b"issue"
            | b"language"
            | b"lastPage"
            | b"licenseCondition"
            | b"nameIdentifier"
            | b"number"
            | b"publicationYear"
            | b"publisher"
            | b"relatedIdentifier"
            | b"relatedItemIdentifier"
            | b"resourceType"
            | b"rights"
            | b"size"
            | b"subject"
            | b"title"
            | b"version"
            | b"volume"
    )
}

/// Whether an element of DataCite or OpenAIRE contains elements.
pub(crate) fn is_datacite_group(local: &[u8]) -> bool {
    matches!(
        local,
        b"alternateIdentifiers"
            | b"contributor"
            | b"contributors"
            | b"creator"
            | b"creators"
            | b"dates"
            | b"descriptions"
            | b"formats"
            | b"fundingReference"
            | b"fundingReferences"
            | b"geoLocation"
            | b"geoLocations"
            | b"relatedIdentifiers"
            | b"relatedItem"
            | b"relatedItems"
            | b"rightsList"
            | b"sizes"
            | b"subjects"
            | b"titles"
    )
}

/// Whether an element of LIDO 1 contains plain text.
pub(crate) fn is_lido_field(local: &[u8]) -> bool {
    matches!(
        local,
        b"actorID"
            | b"appellationValue"
            | b"attributionQualifierActor"
            | b"conceptID"
            | b"creditLine"
            | b"descriptiveNoteID"
            | b"descriptiveNoteValue"
            | b"displayActorInRole"
            | b"displayDate"
            | b"displayEdition"
            | b"displayEvent"
            | b"displayMaterialsTech"
            | b"displayObject"
            | b"displayObjectMeasurements"
            | b"displayPlace"
            | b"displayRepository"
            | b"displayState"
            | b"displaySubject"
            | b"earliestDate"
            | b"eventID"
            | b"extentActor"
            | b"extentMaterialsTech"
            | b"extentMeasurements"
            | b"extentSubject"
            | b"formatMeasurements"
            | b"genderActor"
            | b"inscriptionTranscription"
            | b"latestDate"
            | b"legalBodyID"
            | b"legalBodyWeblink"
            | b"lidoRecID"
            | b"linkResource"
            | b"measurementType"
            | b"measurementUnit"
            | b"measurementValue"
            | b"objectID"
            | b"objectNote"
            | b"objectPublishedID"
            | b"objectWebResource"
            | b"placeID"
            | b"qualifierMeasurements"
            | b"recordID"
            | b"recordInfoID"
            | b"recordInfoLink"
            | b"recordMetadataDate"
            | b"resourceDescription"
            | b"resourceID"
            | b"scaleMeasurements"
            | b"shapeMeasurements"
            | b"sourceActorInRole"
            | b"sourceAppellation"
            | b"sourceDescriptiveNote"
            | b"sourceMaterialsTech"
            | b"sourceStateEdition"
            | b"term"
            | b"workID"
    )
}

/// Whether an element of LIDO 1 contains elements.
pub(crate) fn is_lido_group(local: &[u8]) -> bool {
    const ENDS: [&[u8]; 3] = [b"Wrap", b"Set", b"Metadata"];
    ENDS.iter().any(|end| local.ends_with(end))
        || matches!(
            local,
            b"actor"
                | b"actorInRole"
                | b"category"
                | b"classification"
                | b"date"
                | b"event"
                | b"materialsTech"
                | b"objectWorkType"
                | b"place"
                | b"subject"
                | b"termMaterialsTech"
        )
}

/// Whether an element of the codebooks of DDI 1 and 2 contains text, or the text of DDI 3.
pub(crate) fn is_ddi_field(local: &[u8]) -> bool {
    matches!(
        local,
        b"AuthEnty"
            | b"ConOps"
            | b"Content"
            | b"EstSmpErr"
            | b"IDNo"
            | b"String"
            | b"abstract"
            | b"accsPlac"
            | b"actMin"
            | b"altTitl"
            | b"anlyUnit"
            | b"avlStatus"
            | b"biblCit"
            | b"catStat"
            | b"catValu"
            | b"citReq"
            | b"cleanOps"
            | b"collDate"
            | b"collMode"
            | b"collSitu"
            | b"collSize"
            | b"complete"
            | b"conditions"
            | b"confDec"
            | b"contact"
            | b"copyright"
            | b"dataAppr"
            | b"dataCollector"
            | b"dataKind"
            | b"depDate"
            | b"deposReq"
            | b"depositr"
            | b"deviat"
            | b"disclaimer"
            | b"distDate"
            | b"distrbtr"
            | b"fileCont"
            | b"fileName"
            | b"fileQnty"
            | b"frequenc"
            | b"fundAg"
            | b"geogCover"
            | b"geogUnit"
            | b"grantNo"
            | b"ivuInstr"
            | b"keyword"
            | b"labl"
            | b"nation"
            | b"notes"
            | b"origArch"
            | b"othId"
            | b"othRefs"
            | b"parTitl"
            | b"postQTxt"
            | b"preQTxt"
            | b"prodDate"
            | b"prodPlac"
            | b"producer"
            | b"qstnLit"
            | b"relMat"
            | b"relPubl"
            | b"relStdy"
            | b"resInstru"
            | b"respRate"
            | b"restrctn"
            | b"sampProc"
            | b"serInfo"
            | b"serName"
            | b"software"
            | b"specPerm"
            | b"srcChar"
            | b"srcDocu"
            | b"srcOrig"
            | b"subTitl"
            | b"timeMeth"
            | b"timePrd"
            | b"titl"
            | b"topcClas"
            | b"txt"
            | b"universe"
            | b"verResp"
            | b"version"
            | b"weight"
    )
}

/// Whether an element of DDI 1 and 2 contains elements.
pub(crate) fn is_ddi_group(local: &[u8]) -> bool {
    matches!(
        local,
        b"anlyInfo"
            | b"catgry"
            | b"citation"
            | b"codeBook"
            | b"dataAccs"
            | b"dataColl"
            | b"dataDscr"
            | b"distStmt"
            | b"docDscr"
            | b"fileDscr"
            | b"fileStrc"
            | b"fileTxt"
            | b"method"
            | b"otherMat"
            | b"othrStdyMat"
            | b"prodStmt"
            | b"qstn"
            | b"rspStmt"
            | b"serStmt"
            | b"setAvail"
            | b"sources"
            | b"stdyDscr"
            | b"stdyInfo"
            | b"subject"
            | b"sumDscr"
            | b"titlStmt"
            | b"useStmt"
            | b"var"
            | b"varGrp"
            | b"verStmt"
    )
}

/// Whether a field of DDI 1 and 2 may contain this element. Some of them have the name of one of HTML.
pub(crate) fn is_ddi_markup(local: &[u8]) -> bool {
    matches!(
        local,
        b"ExtLink"
            | b"Link"
            | b"colspec"
            | b"concept"
            | b"div"
            | b"emph"
            | b"entry"
            | b"head"
            | b"hi"
            | b"itm"
            | b"label"
            | b"list"
            | b"p"
            | b"row"
            | b"table"
            | b"tbody"
            | b"tgroup"
            | b"thead"
    )
}
