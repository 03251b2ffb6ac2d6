# Harvests each base URL by HTTP::OAI and prints the records as a line of JSON.
#
# It uses onRecord, because a loop over next() sees only the records of the last page.
use strict;
use warnings;

# HTTP::OAI sleeps for the time in Retry-After. Here a sleep is an error, unless MAY_WAIT is set.
BEGIN { *CORE::GLOBAL::sleep = sub { die "Retry-After: $_[0]\n" } unless $ENV{MAY_WAIT} }

use HTTP::OAI;
use JSON::PP;
use XML::LibXML;
use XML::LibXML::XPathContext;

$| = 1;
# Warnings are not printed. An exception contains the error.
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
