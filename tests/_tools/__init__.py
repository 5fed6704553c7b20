"""What several kinds of tests share: the catalogue of fits, frozen results, recorded and replayed releases."""
