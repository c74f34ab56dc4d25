"""Golden answers: what the API answers to fixed questions over fixed documents, recorded and compared byte for byte."""
