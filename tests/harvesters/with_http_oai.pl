# Harvests each base URL by HTTP::OAI and prints what came as a line of JSON.
#
# By onRecord: a loop over next() sees the records of the last page only.
use strict;
use warnings;

# Told to wait by Retry-After it would sleep; here that is the answer.
BEGIN { *CORE::GLOBAL::sleep = sub { die "told to ask again in $_[0] seconds\n" } }

use HTTP::OAI;
use JSON::PP;
use XML::LibXML;
use XML::LibXML::XPathContext;

$| = 1;
# Its warnings go to the same place as its errors: into the verdict, if it dies.
$SIG{__WARN__} = sub { };

my $XPATH = XML::LibXML::XPathContext->new;
$XPATH->registerNs(dc => 'http://purl.org/dc/elements/1.1/');

sub text_of {
    my ($record, $name) = @_;
    return undef unless $record->metadata;
    my ($element) = $XPATH->findnodes("descendant::dc:$name", $record->metadata->dom);
    return $element ? $element->textContent : undef;
}

for my $base_url (@ARGV) {
    my @records;
    my $error;
    eval {
        my $harvester = HTTP::OAI::Harvester->new(baseURL => $base_url);
        $harvester->timeout(20);
        my $response = $harvester->ListRecords(
            metadataPrefix => 'oai_dc',
            onRecord => sub {
                my ($record) = @_;
                push @records, [
                    $record->identifier, $record->datestamp,
                    text_of($record, 'title'), text_of($record, 'description'),
                ];
            },
        );
        $error = $response->code . ' ' . $response->message if $response->is_error;
        1;
    } or $error = "$@" || 'died';
    print JSON::PP->new->ascii->canonical->encode({ records => \@records, error => $error }), "\n";
}
