export {
  isJsonObject,
  isText,
  JsonFault,
  type JsonObject,
  nonEmptyString,
  objectsIn,
  parseJson,
  parseJsonObject,
  parseUnambiguous,
  tokenCount,
} from './json-object.ts'
export { endOfString, type JsonTally, jsonExcess, newTally, parseExactly } from './json-text.ts'
export { isKeptInteger, keepingIntegers, parseKeepingIntegers } from './kept-integers.ts'
export { parsedBytes } from './parsed-bytes.ts'
export { protoMembers } from './proto-members.ts'
export { WELL_FORMED, withoutLoneSurrogates } from './well-formed.ts'
