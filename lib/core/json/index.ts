export { parseExactly } from './exact-parse.ts'
export { endOfString, type JsonTally, jsonExcess, newTally } from './json-bounds.ts'
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
export { withoutLoneSurrogates } from './well-formed.ts'
