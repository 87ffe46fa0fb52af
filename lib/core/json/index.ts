export { isKeptInteger, keepingIntegers, parseKeepingIntegers } from './big-integers.ts'
export { type JsonTally, jsonExcess, newTally, parsedBytes } from './json-bounds.ts'
export { editMembers, endOfString, type MemberEdits, memberText, withoutMember } from './json-text.ts'
export {
  isJsonObject,
  isText,
  type JsonObject,
  nonEmptyString,
  objectsIn,
  protoMembers,
  someObject,
  tokenCount,
} from './json-values.ts'
export { WELL_FORMED, withoutLoneSurrogates } from './lone-surrogates.ts'
export {
  JsonFault,
  parseExactly,
  parseJson,
  parseJsonObject,
  parseUnambiguous,
  withoutMark,
} from './parse-json.ts'
