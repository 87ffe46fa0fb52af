export { isJsonObject, type JsonObject, nonEmptyString, objectsIn, parseJsonObject } from './json-object.ts'
