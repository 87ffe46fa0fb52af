export { STORED_RESPONSE_PATH, type StoredResponseOptions, storedResponse } from './stored-response.ts'
