export { endOfString, type JsonTally, jsonExcess, newTally } from './json-bounds.ts'
export {
  isJsonObject,
  type JsonObject,
  nonEmptyString,
  objectsIn,
  parseJson,
  parseJsonObject,
  tokenCount,
} from './json-object.ts'
export { JsonFault, parseUnambiguous } from './unambiguous-json.ts'
export { withoutLoneSurrogates } from './well-formed.ts'
