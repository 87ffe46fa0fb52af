export { ENCODINGS, type Encoding, mostDecoded } from './content-encoding.ts'
