export { type AccountOption, accountFrom, anAccount } from './account-scope.ts'
export { accountLimits, amount, isoTime, keyLimits, time } from './answer-members.ts'
export {
  type Answer,
  type AnswerOf,
  answersWith,
  type Endpoint,
  type EndpointDescription,
  type EndpointRequest,
  endpointFor,
  orNotFound,
  refuseUnknown,
  routeOf,
  serveEndpoints,
} from './endpoint.ts'
export { jsonBody } from './json-body.ts'
export { accountPageQuery, fittingRows, listOf, listPage, pageById, pageMembers, pageQuery } from './lists.ts'
export { noStore, setNoStore } from './no-store.ts'
export { queryTime, readQuery, readTaggedQuery } from './query.ts'
export { newRouter } from './router.ts'
